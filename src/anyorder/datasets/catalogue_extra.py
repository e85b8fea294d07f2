"""Datasets beyond the paper's own: molecules and hypergraphs that stand in for its data or go further."""

from __future__ import annotations

from anyorder.datasets.entries import DataFile, Dataset

_GITHUB = "https://raw.githubusercontent.com/"
_GRAPHIUM = _GITHUB + "datamol-io/graphium/f1c1809387184114a06ac2077bb57501bf09f495/tests/data/"
_SELFIES = _GITHUB + "aspuru-guzik-group/selfies/eb6177e5f20cfd8787f2ac4423f5b38dce6eeeb8/tests/test_sets/molnet/"
_EHNN = _GITHUB + "jw9730/ehnn/5895296ad8d4e811e772a2e1e3f77ab3fe5643db/semi-supervised-node-classification/data/raw_data/"

QM9 = Dataset(
    name="qm9",
    title="QM9: 130,831 small organic molecules with their HOMO-LUMO gap",
    task="graph regression (stand-in for Table 2)",
    licence="MIT (package qm9pack)",
    source="https://github.com/raghurama123/qm9pack",
    citation="Ramakrishnan et al., Quantum chemistry structures and properties of 134 kilo molecules, Sci. Data 2014",
    files=(
        DataFile(
            "qm9.csv.gz",
            size=17421335,
            sha256="71f8bbd82085549ac81b64d811635434dd83ecb890d4d15cdd015f6026f2cc62",
            content=True,
        ),
    ),
    originals=(
        DataFile(
            "qm9pack-1.0.3-py3-none-any.whl",
            size=103712597,
            sha256="1d88c2988007c6778e717ee3224cf511bd60e10732ebe3b7ed500ea5af05c9f0",
            how="pip download --no-deps --dest {folder} qm9pack==1.0.3",
        ),
    ),
    make="qm9",
    notes="15 of the package's 25 columns; gap_ha is in hartree (x 27.211386 = eV). There is no official split.",
)

PCQM4MV2_2K = Dataset(
    name="pcqm4mv2_2k",
    title="The first 1,999 molecules of PCQM4Mv2, with their real HOMO-LUMO gap",
    task="graph regression (stand-in for Table 2)",
    licence="Apache-2.0 (repository)",
    source="https://github.com/datamol-io/graphium",
    citation="Hu et al., OGB-LSC: A Large-Scale Challenge for Machine Learning on Graphs, NeurIPS 2021 (datasets)",
    files=(
        DataFile(
            "pcqm4mv2_2k.csv.gz",
            size=176841,
            sha256="c2e2fcb588be1a9aa8cded8519b9fbaebebfe3a2871b6fe278d353a631c51366",
            content=True,
        ),
        DataFile(
            "pcqm4mv2-2k_original_cxsmiles.csv.gz",
            size=1502570,
            sha256="dda38a33961b1a33378252cdce786f5c3907b4cca098b4aaefe36ea1cf97532e",
            content=True,
        ),
    ),
    originals=(
        DataFile(
            "pcqm4mv2-2k.csv",
            url=_GRAPHIUM + "pcqm4mv2-2k.csv",
            size=1504570,
            sha256="a26a6fc08db2e21d9e0a499d9d6c6543b8398e7065e695eda53ad15468ca32fe",
        ),
    ),
    make="pcqm4mv2_2k",
    notes="The canonical SMILES were written by RDKit 2026.09.1; another release may write some of them differently.",
)

_ZINC_FILES = (
    ("zinc_jtnn_valid_test.csv.gz", 2876519, "0a2c2fc3d56c182a65b7b4df5f3750babc8918aeac8c79bae16e3438d90791d8"),
    ("zinc12k_train.index.gz", 65110, "575d6acd72ac207a95947e2bdd16411ef6fc3faa88c2f55a2c496ea43022a6d8"),
    ("zinc12k_val.index.gz", 5541, "fe48c38157f0d38e7fc441903a143392eda080511a79e8fb8f60f5c1b0a9c164"),
    ("zinc12k_test.index.gz", 4782, "6aa50d98976044fb36089afef5b4c991b429ca1c8e009d33a0319e42a2d9b525"),
)

ZINC_JTNN = Dataset(
    name="zinc_jtnn",
    title="29,445 molecules of ZINC-250k with penalised logP",
    task="graph regression (beyond the paper)",
    licence="MIT (both repositories)",
    source="https://github.com/wengong-jin/icml18-jtnn, https://github.com/graphdeeplearning/benchmarking-gnns",
    citation="Jin et al., Junction Tree Variational Autoencoder for Molecular Graph Generation, ICML 2018",
    files=tuple(DataFile(path, size=size, sha256=sha, content=True) for path, size, sha in _ZINC_FILES),
    notes="SMILES from data/zinc/valid.txt and test.txt of the first source, row numbers from data/molecules/*.index "
    "of the second, labels computed with RDKit: logP, synthetic accessibility and ring size, standardised and summed.",
)

_MOLECULENET_FILES = (
    ("esol.csv", 96699, "8c06a76f0c6487d29ab0f903e6a7a7139f189ab3c1178f159c8be8964602f189"),
    ("freesolv.csv", 31417, "a4fbf3b28fe2e604d6bd7ea0e20b4494ff732400a80f58d1b393677cfbc1b06c"),
    ("lipo.csv", 278405, "3d2a409dc8bdf620876bb7257faf4996df29a19dd0244d0b4a6a8064c306cded"),
)

MOLECULENET_SMALL = Dataset(
    name="moleculenet_small",
    title="ESOL, FreeSolv and lipophilicity: measured properties of small molecules",
    task="graph regression (beyond the paper)",
    licence="Apache-2.0 (repository)",
    source="https://github.com/aspuru-guzik-group/selfies",
    citation="Wu et al., MoleculeNet: a benchmark for molecular machine learning, Chem. Sci. 2018",
    files=tuple(DataFile(path + ".gz", size=size, sha256=sha, content=True) for path, size, sha in _MOLECULENET_FILES),
    originals=tuple(DataFile(path, url=_SELFIES + path, size=size, sha256=sha) for path, size, sha in _MOLECULENET_FILES),
    make="gzip",
    notes="1,128, 642 and 4,200 molecules.",
)

_HYPERGCN_FILES = (
    ("cocitation_cora.npz", 102778, "e71bff849b621ac0ae696becb695e5510c4b61561c1bf4da7f7a7bd1788b93fa"),
    ("cocitation_citeseer.npz", 197763, "398357f936e27c6a8cb3d0cce19a394167a0c5882b4cba538d0c8609236bd6e9"),
    ("cocitation_pubmed.npz", 112685, "a65e877683a69364d58ba81b4324eae07ce696fc82bd8bc3e210f788c4408d5c"),
    ("coauthorship_cora.npz", 108928, "d36de549998fbad8c8b4355c77382f418a4875e6558be4abf14c48c32f97eaff"),
    ("coauthorship_dblp.npz", 540684, "1340e079ba315950a4c0ede51e071fbb475c9ad6c05f22436bbabe8790cda686"),
)

HYPERGCN_COCITATION = Dataset(
    name="hypergcn_cocitation",
    title="Co-citation and co-authorship hypergraphs: cora, citeseer, pubmed, dblp",
    task="node classification on hypergraphs (beyond the paper)",
    licence="Apache-2.0 (repository)",
    source="https://github.com/malllabiisc/HyperGCN",
    citation="Yadati et al., HyperGCN: A New Method for Training GCNs on Hypergraphs, NeurIPS 2019",
    files=tuple(DataFile(path, size=size, sha256=sha) for path, size, sha in _HYPERGCN_FILES),
    notes="The source publishes pickles, which can run code when they are opened: these are the same values as plain "
    "arrays (indptr, members, labels, num_nodes, feat_*, split1_train to split10_train). pubmed and dblp "
    "have no features.",
)

_NODECLASS_FILES = (
    ("20newsW100/20newsW100.content.gz", 3422063, "e0a8193672f027c4eea54258a069473dd0bdcf3425ff3c6b50429c54ba5c18de"),
    ("20newsW100/20newsW100.edges.gz", 742286, "b427937f20ab794e75e0a206f70bbe051ef60807a84f42cfa6cf7ee060acdf16"),
    ("Mushroom/Mushroom.content.gz", 849432, "09dbb05cef3b7a98267a42daaf81d0c2f9c4453427dba33b1943eb4438828dc0"),
    ("Mushroom/Mushroom.edges.gz", 400650, "116382d50f3bfc1feb16c0f104c76220ca4c56b56fda2b354cbd0bf09ebfb7f9"),
    ("NTU2012/NTU2012.content.gz", 2788407, "f59d6f62c94d1ef4861a95ddcd76c24411d7deb6fd4f2777e40ea83563630d2c"),
    ("NTU2012/NTU2012.edges.gz", 95185, "3de34493d0e37b2d1b7d5df35e0d9246e4d3dff0de39ec4fa7f16abdfacee8b8"),
    (
        "house-committees/hyperedges-house-committees.txt.gz",
        47768,
        "d45b8b4532034c78232e6a1abb71b28777818b51035de84c5c14d9de2264432d",
    ),
    (
        "house-committees/label-names-house-committees.txt.gz",
        20,
        "52d6e50299ac02938e2c0996d5083f10d3bd78007cfaed73df3828b26310e514",
    ),
    (
        "house-committees/node-labels-house-committees.txt.gz",
        2580,
        "3611f1fb43b0caa8a56efd0bfbdfec061a9732322b0eca45d7b05bf83f8ed7a2",
    ),
    (
        "walmart-trips/hyperedges-walmart-trips.txt.gz",
        2484156,
        "641e580c64710d30da7621ae326137dbdcf503f10cf06fd39ab20b0e1b39ec00",
    ),
    (
        "walmart-trips/label-names-walmart-trips.txt.gz",
        248,
        "20ab1f4c2b6ec85b54b1da71e7f5339b804375d6d6df5db7d1deb1910bf2e761",
    ),
    (
        "walmart-trips/node-labels-walmart-trips.txt.gz",
        185665,
        "6799bfdc85df02f62a9f8b8ae8c34a61763e69eb3c4799cee12461cefacc58ed",
    ),
    ("zoo/zoo.content.gz", 9200, "a7cd1c38447b54acd3592c5346af64a20580cff73464067f3be9d3f06f76b610"),
    ("zoo/zoo.edges.gz", 11866, "78907f834a28e4e52758b165883ac348e0f0ff6ba7a0a243e5cd08231d4f311b"),
)

HYPERGRAPH_NODECLASS = Dataset(
    name="hypergraph_nodeclass",
    title="zoo, Mushroom, NTU2012, 20newsW100, house-committees and walmart-trips",
    task="node classification on hypergraphs (beyond the paper)",
    licence="MIT (the AllSet collection)",
    source="https://github.com/jianhao2016/AllSet",
    citation="Chien et al., You are AllSet: A Multiset Function Framework for Hypergraph Neural Networks, ICLR 2022",
    files=tuple(DataFile(path, size=size, sha256=sha, content=True) for path, size, sha in _NODECLASS_FILES),
    originals=tuple(
        DataFile(path.removesuffix(".gz"), url=_EHNN + path.removesuffix(".gz"), size=size, sha256=sha)
        for path, size, sha in _NODECLASS_FILES
    ),
    make="gzip",
    notes="Only the first rows of a .content file are nodes; the later ones are placeholders for hyperedges.",
)

EXTRA: tuple[Dataset, ...] = (
    QM9,
    PCQM4MV2_2K,
    ZINC_JTNN,
    MOLECULENET_SMALL,
    HYPERGCN_COCITATION,
    HYPERGRAPH_NODECLASS,
)
