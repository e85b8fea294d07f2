"""Every dataset of the paper and of the project, as values; a new dataset is one more entry."""

from __future__ import annotations

from anyorder.datasets.catalogue_extra import EXTRA
from anyorder.datasets.catalogue_graphs import GRAPHS
from anyorder.datasets.catalogue_pairs import BREC
from anyorder.datasets.entries import DataFile, Dataset

_OGB = "https://dgl-data.s3-accelerate.amazonaws.com/dataset/OGB-LSC/"
_GITHUB = "https://raw.githubusercontent.com/"
_SAGNN = _GITHUB + "ma-compbio/Hyper-SAGNN/be978daade0305798c45f27d3ba3c66a5f4c5a59/data/"
_ALICE = _GITHUB + "choich08365/GNN_b-jet_tagging_handson/c90951899679537dccd34ea49d328ad6ed5817e6/data/"
_ZENODO = "https://zenodo.org/records/4044628/files/"
_JETS = ("training_data.root", "valid_data.root", "test_data.root")
_SET2GRAPH = "Serviansky et al., Set2Graph: Learning Graphs From Sets, NeurIPS 2020"
_OGB_LSC = "Hu et al., OGB-LSC: A Large-Scale Challenge for Machine Learning on Graphs, NeurIPS 2021 (datasets)"

CHAINS = Dataset(
    name="chains",
    title="Synthetic chains: the label sits on one end, every node must know it",
    task="node classification (Table 1)",
    licence="none needed: generated from a seed",
    source="generated",
    citation="Gu et al., Implicit Graph Neural Networks, NeurIPS 2020",
    notes="40 chains of 20 nodes for training, 20 chains of 200 nodes for test.",
)

DELAUNAY = Dataset(
    name="delaunay",
    title="Delaunay triangulations of random points in the unit square, 50 or 20 to 80 points",
    task="set to graph (Table 3)",
    licence="none needed: generated from a seed",
    source="generated",
    citation=_SET2GRAPH,
    notes="50,000 training sets and 5,000 held-out sets; scipy computes the triangulation.",
)

JETS = Dataset(
    name="jets",
    title="Secondary vertices in jets, the official files, 0.9M jets",
    task="set to graph (Table 3)",
    licence="as stated on the Zenodo record",
    source="https://zenodo.org/records/4044628",
    citation=_SET2GRAPH,
    files=tuple(DataFile(name, url=_ZENODO + name + "?download=1") for name in _JETS),
    notes="Sizes and checksums are not published with the project: what is downloaded is recorded in SHA256SUMS.",
)

JETS_ALICE = Dataset(
    name="jets_alice",
    title="19,979 jets in the official schema from another detector set-up",
    task="set to graph (stand-in for the official jets)",
    licence="Apache-2.0 (repository)",
    source="https://github.com/choich08365/GNN_b-jet_tagging_handson",
    citation=_SET2GRAPH,
    files=(
        DataFile(
            "training_data.root",
            url=_ALICE + "train/training_data.root",
            size=3184095,
            sha256="6b0f97b7a4a4e5a4b2e819367ee9f374937b6ab6168febcf00e81906971916dc",
        ),
        DataFile(
            "valid_data.root",
            url=_ALICE + "validation/valid_data.root",
            size=645341,
            sha256="4425cc65cab9f613973c23761693d23db46ed7aea56d11ba58dca26c14d2773b",
        ),
        DataFile(
            "test_data.root",
            url=_ALICE + "test/test_data.root",
            size=641007,
            sha256="cf26d11c843b77809b6adc6927b57fd807164eaf66465ef203aca4bdee807963",
        ),
    ),
    notes="14,274 / 2,860 / 2,845 jets; the official normalisation does not fit: compute it from the training file.",
)

JETS_SIMULATED = Dataset(
    name="jets_simulated",
    title="Jets simulated with Pythia and FastJet, made to resemble the official sample",
    task="set to graph (stand-in for the official jets)",
    licence="yours: simulated on your machine",
    source="anyorder data simulate jets",
    citation="Bierlich et al., A comprehensive guide to the physics and usage of PYTHIA 8.3, 2022",
    files=tuple(DataFile(name) for name in _JETS),
    command="anyorder data simulate jets",
    notes="A stand-in, in the schema of the official files; the flags of the command decide how many jets there are.",
)

_HYPEREDGE_FILES = (
    ("GPS/train_data.npz", 28108, "cb0b000a66ca61e956bcf18d1e1d39fe6f0b277510503e2deca008f2e62f0d09"),
    ("GPS/test_data.npz", 7178, "7ed40b944b9885d955d69fb1f1791ecea946c8bf4d4d5dbfda5ce4581e2b0301"),
    ("MovieLens/train_data.npz", 989460, "50246a9bde10b72968f7e857db741a03ec9b7c2d58908ff6b6cb6d0a0b06e5f4"),
    ("MovieLens/test_data.npz", 193538, "9b3b199fb9d2ee20eac0ac0d108a2a307849a2c28a95689ade342d62bc3537bc"),
    ("drug/train_data.npz", 3298108, "304577d37203e72ac10954ef2e9ab75e2113645af786b10d5a82db21f2db7acc"),
    ("drug/test_data.npz", 824858, "77892d6f299740829c955a69fa21cb560424941439c2e29909fe53e116c5808f"),
    ("wordnet/train_data.npz", 3152780, "dc6575c71c5744d12824119d722cdddcff93af0e4c202fd38c5ffc0512921399"),
    ("wordnet/test_data.npz", 703346, "49fa119ca83cf1f2660e1ac1bcbabcebfc74d086e3a11b64d0945d6afca10f87"),
)

DHNE_HYPEREDGES = Dataset(
    name="dhne_hyperedges",
    title="3-uniform hyperedges: GPS, MovieLens, drug and wordnet",
    task="k-uniform hyperedge prediction (Table 4)",
    licence="MIT (repository); the collections keep their terms: MovieLens is for research use",
    source="https://github.com/ma-compbio/Hyper-SAGNN",
    citation="Tu et al., Structural Deep Embedding for Hyper-Networks, AAAI 2018",
    files=tuple(DataFile(path, url=_SAGNN + path, size=size, sha256=sha) for path, size, sha in _HYPEREDGE_FILES),
    notes="MovieLens as released has 1,943/5,610/8,040 nodes and 46,412 hyperedges, fewer than the paper's table; "
    "23,025 of the 34,352 test rows of drug also occur in its training part.",
)


def _ogb(name: str, title: str, task: str) -> Dataset:
    """A molecule set in OGB's layout, from OGB's archive."""
    return Dataset(
        name=name,
        title=title,
        task=task,
        licence="CC BY 4.0 (see the source)",
        source="https://ogb.stanford.edu/docs/lsc/pcqm4mv2/",
        citation=_OGB_LSC,
        files=(DataFile("raw/data.csv.gz"), DataFile("split_dict.pt")),
        originals=(DataFile(f"{name}.zip", url=f"{_OGB}{name}.zip"),),
        make="unpack",
        notes="The folder has OGB's layout: one made by the ogb package works as it is.",
    )


CATALOGUE: tuple[Dataset, ...] = (
    CHAINS,
    DELAUNAY,
    JETS,
    JETS_ALICE,
    JETS_SIMULATED,
    DHNE_HYPEREDGES,
    _ogb(
        "pcqm4m_kddcup2021",
        "PCQM4M-LSC: HOMO-LUMO gap of 3.8M molecules",
        "large-scale graph regression (Table 2)",
    ),
    _ogb(
        "pcqm4m-v2",
        "PCQM4Mv2: HOMO-LUMO gap of 3.7M molecules, the corrected second version",
        "large-scale graph regression (successor of Table 2)",
    ),
    *EXTRA,
    GRAPHS,
    BREC,
)
