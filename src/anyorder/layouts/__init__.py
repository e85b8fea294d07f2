"""Index sets and features: which tuples exist, what they carry, and how to find one's way among them."""

from anyorder.layouts.complete import CompleteIndexSet, DenseIndexSet, complete_index_set
from anyorder.layouts.features import Features, collate
from anyorder.layouts.index_set import Entries, IndexSet
from anyorder.layouts.lookup import Segments, TupleIndex
from anyorder.layouts.mixed import MixedFeatures
from anyorder.layouts.plan import Groups, Plan, Queries, Spread
from anyorder.layouts.sparse import SparseIndexSet
from anyorder.layouts.symmetric import SymmetricIndexSet

__all__ = [
    "CompleteIndexSet",
    "DenseIndexSet",
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
    "TupleIndex",
    "collate",
    "complete_index_set",
]
