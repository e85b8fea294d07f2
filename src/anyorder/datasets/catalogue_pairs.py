"""Graphs that are hard to tell apart."""

from __future__ import annotations

from anyorder.datasets.entries import DataFile, Dataset

_BREC = "https://raw.githubusercontent.com/GraphPKU/BREC/d45190961b86548c626e5bc29ded4c67f5fa4f24/customize/Data/raw/"
_BREC_FILES = (
    ("basic.npy", 4448, "adef7f761b803026b515d94172399f5db72fe73859b0e489a1edfaa5874aeec2"),
    ("regular.npy", 1028, "e9e85ff2003f50676e2a2ac7ef70b8ad919598c3042aaf8f5f6f43184bfdc663"),
    ("extension.npy", 24128, "9b76b59842f997a502a83724daba033d793c5fbc9c2aa758834beb78d2309d4a"),
    ("str.npy", 40528, "6de58d99b80b7ace4529d17cf8fe3d000b496b3c2a7ab7f59fe3f28f61746d6f"),
    ("4vtx.npy", 52928, "a9e593c485f3fa08d3db967d7c545a4f5cf7f417f016c9a77a5c1cc646786cea"),
    ("dr.npy", 13328, "11b861e1439ddee4c58fa04b523e874c25fdbb4ba867f3ac9104711cb3739d89"),
    ("cfi.npy", 651128, "e8d56d7c0a22768da8dfdcaae800bc8dc815fb10b1bf1b52dc7893ed68c4e92f"),
)

BREC = Dataset(
    name="brec",
    title="BREC: 400 pairs of graphs that are hard to tell apart",
    task="expressivity (beyond the paper)",
    licence="MIT",
    source="https://github.com/GraphPKU/BREC",
    citation="Wang and Zhang, An Empirical Study of Realized GNN Expressiveness, ICML 2024",
    files=tuple(DataFile(path, url=_BREC + path, size=size, sha256=sha) for path, size, sha in _BREC_FILES),
    notes="Arrays of graph6 strings; graphs 2n and 2n + 1 are a pair.",
)
