"""Index sets and features: which tuples exist, what they carry, and how to find one's way among them."""

from anyorder.layouts.complete import CompleteIndexSet, DenseIndexSet
from anyorder.layouts.entries import Entries
from anyorder.layouts.features import Features, collate
from anyorder.layouts.from_graph import AllTuples, ConnectedTuples, DistinctTuples, Tuples, TuplesWithin
from anyorder.layouts.hops import TooManyTuples
from anyorder.layouts.index_set import IndexSet
from anyorder.layouts.lift import lift
from anyorder.layouts.lookup import TupleIndex
from anyorder.layouts.mixed import MixedFeatures
from anyorder.layouts.overlaps import OverlapPairs, SharedSubsets
from anyorder.layouts.plan import Exact, Grouped, Groups, Plan, Single
from anyorder.layouts.segments import Queries, Segments, Spread
from anyorder.layouts.sparse import SparseIndexSet, complete_index_set
from anyorder.layouts.symmetric import SymmetricIndexSet
from anyorder.layouts.tiles import EntryPairs, Tile, Tiling

__all__ = [
    "AllTuples",
    "CompleteIndexSet",
    "ConnectedTuples",
    "DenseIndexSet",
    "DistinctTuples",
    "Entries",
    "EntryPairs",
    "Exact",
    "Features",
    "Grouped",
    "Groups",
    "IndexSet",
    "MixedFeatures",
    "OverlapPairs",
    "Plan",
    "Queries",
    "Segments",
    "SharedSubsets",
    "Single",
    "SparseIndexSet",
    "Spread",
    "SymmetricIndexSet",
    "Tile",
    "Tiling",
    "TooManyTuples",
    "TupleIndex",
    "Tuples",
    "TuplesWithin",
    "collate",
    "complete_index_set",
    "lift",
]
