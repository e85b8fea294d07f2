"""Index sets and features: which tuples exist, what they carry, and how to find one's way among them."""

from anyorder.layouts.complete import CompleteIndexSet, DenseIndexSet, complete_index_set
from anyorder.layouts.features import Features, collate
from anyorder.layouts.from_graph import AllTuples, ConnectedTuples, DistinctTuples, Tuples, TuplesWithin
from anyorder.layouts.hops import TooManyTuples
from anyorder.layouts.index_set import Entries, IndexSet
from anyorder.layouts.lift import lift
from anyorder.layouts.lookup import Segments, TupleIndex
from anyorder.layouts.mixed import MixedFeatures
from anyorder.layouts.plan import Groups, Plan, Queries, Spread
from anyorder.layouts.sparse import SparseIndexSet
from anyorder.layouts.symmetric import SymmetricIndexSet

__all__ = [
    "AllTuples",
    "CompleteIndexSet",
    "ConnectedTuples",
    "DenseIndexSet",
    "DistinctTuples",
    "Entries",
    "Features",
    "Groups",
    "IndexSet",
    "MixedFeatures",
    "Plan",
    "Queries",
    "Segments",
    "SparseIndexSet",
    "Spread",
    "SymmetricIndexSet",
    "TooManyTuples",
    "TupleIndex",
    "Tuples",
    "TuplesWithin",
    "collate",
    "complete_index_set",
    "lift",
]
