"""In a PyTorch Geometric project: convolutions, a whole model, positions and plans as transforms (extra ``pyg``)."""

from anyorder.positions import flip_signs, laplacian_positions, random_walk_positions
from anyorder.pyg.conv import DropInConv, PairConv
from anyorder.pyg.model import GraphTransformer
from anyorder.pyg.pairs import PairSet
from anyorder.pyg.transforms import AddLaplacian, AddRandomWalks, PreparePairs

__all__ = [
    "AddLaplacian",
    "AddRandomWalks",
    "DropInConv",
    "GraphTransformer",
    "PairConv",
    "PairSet",
    "PreparePairs",
    "flip_signs",
    "laplacian_positions",
    "random_walk_positions",
]
