"""Converters both ways: edge lists, PyTorch Geometric, dense tensors with masks, NetworkX, XGI, HIF and NPZ files."""

from anyorder.convert.dense import from_dense, node_mask, to_dense
from anyorder.convert.edges import from_edges
from anyorder.convert.hif import from_hif, from_hif_by_size, read_hif, to_hif, write_hif
from anyorder.convert.networkx import from_networkx, to_networkx
from anyorder.convert.npz import read_npz, write_npz
from anyorder.convert.pyg import from_pyg, to_pyg
from anyorder.convert.separate import separate
from anyorder.convert.xgi import from_xgi, from_xgi_by_size, to_xgi

__all__ = [
    "from_dense",
    "from_edges",
    "from_hif",
    "from_hif_by_size",
    "from_networkx",
    "from_pyg",
    "from_xgi",
    "from_xgi_by_size",
    "node_mask",
    "read_hif",
    "read_npz",
    "separate",
    "to_dense",
    "to_hif",
    "to_networkx",
    "to_pyg",
    "to_xgi",
    "write_hif",
    "write_npz",
]
