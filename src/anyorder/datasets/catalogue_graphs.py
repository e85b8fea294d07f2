"""Datasets of graphs: two TU sets of molecules and two graphs of Geom-GCN with their splits."""

from __future__ import annotations

from anyorder.datasets.entries import DataFile, Dataset

_GITHUB = "https://raw.githubusercontent.com/"
_TU = _GITHUB + "XuelinHu/Matrix-ResGNN-GraphClassificatio/d932440ad7f393a1c5a8fc53592222c2ee9309e1/data/TUDataset/"
_GEOM = _GITHUB + "graphdml-uiuc-jlu/geom-gcn/master/"
_FILES = (
    ("MUTAG/MUTAG_A.txt", 76940, "d9656ca7493f3445d737c711710bb36fd432dddd1c0ea32e1d4713c86ebd28e2"),
    ("MUTAG/MUTAG_edge_labels.txt", 14884, "4669ce755075ff86c3240709345745886400908fa637a49310459b9c267b3e56"),
    ("MUTAG/MUTAG_graph_indicator.txt", 11532, "7d520a4d6c7961c0cdeabe076d8fe27e795b6d373485c9a2b744987e560a2056"),
    ("MUTAG/MUTAG_graph_labels.txt", 439, "a1518ea39ba3426bd42f57396b9c4baffe68e9adc718caeeab0119c6591a5f2c"),
    ("MUTAG/MUTAG_node_labels.txt", 6742, "678f429965490e84dd27713017538c995fc05d1621beac910848b600015ee863"),
    ("Mutagenicity/Mutagenicity_A.txt", 3554144, "ae85e22b4b898ebd819d2ed3adc8f06a7bf1cda746b333086472d19b36711145"),
    (
        "Mutagenicity/Mutagenicity_edge_labels.txt",
        533788,
        "bf8e783386ac22e6033bbce56d765c0a4336649bd590a6f1e467b27b549f2114",
    ),
    (
        "Mutagenicity/Mutagenicity_graph_indicator.txt",
        622816,
        "88b2d83ff10fad75b3280654061e965976f74e75620058c371ed23567236b4bc",
    ),
    ("Mutagenicity/Mutagenicity_graph_labels.txt", 8674, "b604c7dcbfdf89193901e32abdcbf9b5b92137414ce22231f00ed65d48ec48f9"),
    (
        "Mutagenicity/Mutagenicity_node_labels.txt",
        263105,
        "b429ec418c831d02dc3088b2fe08d11214627850d2bbdacfa9797c0510e70ae7",
    ),
    ("wisconsin/out1_graph_edges.txt", 3606, "ebd213511c88fce1eda450c2f920600c4b8cbb38f02384856bcc47c6ec1807ae"),
    ("wisconsin/out1_node_feature_label.txt", 856324, "a32b0aa38d42f0d36841e8a8cb646d197f0ff33a182ac75a2b4476aeed3c7e4b"),
    ("wisconsin/split_0.npz", 805, "f66f641e191d35d491cd3b63d6c2cd93c4b436da398984b44c19a8d4d7e7b1a5"),
    ("wisconsin/split_1.npz", 739, "534aeb97266bd5a85a8587adf8eebad3f2e001c1240610f24b62c0ad0c2466ee"),
    ("wisconsin/split_2.npz", 747, "047a5b641778ec3a4c76055fd7f18ecb2424c0952f20dfff7e1b17749d8acbdd"),
    ("wisconsin/split_3.npz", 810, "706c27b4c51d046c0316f1e915f093e4a1fff48b3436b3e7c421eab596a99e77"),
    ("wisconsin/split_4.npz", 812, "7ee813605eec086457aaff022cf3837f2f893fcf8bd37e3a8d2ff0c80e4c4f87"),
    ("wisconsin/split_5.npz", 749, "8094ac2bdaf2cbea8f7a48df66a0800c809b2fd5942740e6b0441b660d3a0dd5"),
    ("wisconsin/split_6.npz", 735, "c423a8deea9b18f9ecb6cfd703578e2159df167de01fe7e6195b88995010252d"),
    ("wisconsin/split_7.npz", 733, "57ad808c8d4dd94dc4404124370bbcebb3dcc597c2bea6457bf05f220adf1527"),
    ("wisconsin/split_8.npz", 741, "27d4d62a2a6aea2cdc399302237512ab0d64fb0c84e648112f97c5896274e42f"),
    ("wisconsin/split_9.npz", 744, "3c149cd124a19021031609e0d7743a7be59aae4f88c8d38410138e8f06f5daaf"),
    ("film/out1_graph_edges.txt", 323820, "997cdce67ea9c29257d3ffe796328391931901cf823830affa453178b60e2c3e"),
    ("film/out1_node_feature_label.txt", 207718, "1d5cdd094f8b91e770f6decfca85b35cf42f75d1efb51055fd6af16e11820ff8"),
    ("film/split_0.npz", 4214, "4505a41d4e90abd94d1ec22571ce528b09ad7cf20d87f764aebd4177590767f5"),
    ("film/split_1.npz", 4231, "1871b0d24e3977c41e378fd24acc8025b63f86b77739be77a5b558d1287f207d"),
    ("film/split_2.npz", 4224, "d26680e911ef3ecc9fc2a26d90c9d35028c63aadd7a5aea774649d1496c282cb"),
    ("film/split_3.npz", 4207, "6755ad5f6a0be8594b344af3d2261eed935b83b73c4d70136e1a7beea7f78cb0"),
    ("film/split_4.npz", 4233, "328fdca62b25074f21f2922518e042f24b3b8a1fc378f9dfb2cae36439aed902"),
    ("film/split_5.npz", 4224, "5b3161a8dc8de4b2e651ebd56d68e768d1377044895b325566117fe26ab81cb7"),
    ("film/split_6.npz", 4221, "e251b38abd4d7931b5e9ae5aba99dcdf87f0be283bdf6e65421274a1c9ef1df6"),
    ("film/split_7.npz", 4205, "12164ef9f5620a2f12a387f4f2b8636859d42201101d6d32829ade62d5a98326"),
    ("film/split_8.npz", 4217, "405cd1f7f631f678119f8bf2405809e86614d532985beb59566fcf95abd35b3f"),
    ("film/split_9.npz", 4208, "505691c5d41bb37b20d085415dcdde2e8e68b5bc4e1feb2c0e361308002012bb"),
)


def _address(path: str) -> str:
    """Where a file is published.

    >>> _address("film/split_3.npz").removeprefix(_GEOM)
    'splits/film_split_0.6_0.2_3.npz'
    """
    folder, _, name = path.partition("/")
    if name.startswith(folder):
        return f"{_TU}{folder}/raw/{name}"
    if name.startswith("split_"):
        return f"{_GEOM}splits/{folder}_split_0.6_0.2_{name.removeprefix('split_')}"
    return f"{_GEOM}new_data/{folder}/{name}"


GRAPHS = Dataset(
    name="graphs",
    title="MUTAG and Mutagenicity (molecules), wisconsin (web pages) and film (actors)",
    task="classes of graphs and nodes, links (beyond the paper)",
    licence="none stated by the sources",
    source="https://github.com/graphdml-uiuc-jlu/geom-gcn and https://chrsmrrs.github.io/datasets",
    citation="Morris et al., TUDataset, 2020; Pei et al., Geom-GCN: Geometric Graph Convolutional Networks, ICLR 2020",
    files=tuple(DataFile(path, url=_address(path), size=size, sha256=sha) for path, size, sha in _FILES),
)
