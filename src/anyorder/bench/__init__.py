"""Time and memory of models and layers, measured."""

from anyorder.bench.graphs import barabasi_albert
from anyorder.bench.isolation import ProcessOutcome, isolated
from anyorder.bench.measure import Timing, alternate, measure, peak_memory, planning
from anyorder.bench.products import Product, executed_products, time_products

__all__ = [
    "ProcessOutcome",
    "Product",
    "Timing",
    "alternate",
    "barabasi_albert",
    "executed_products",
    "isolated",
    "measure",
    "peak_memory",
    "planning",
    "time_products",
]
