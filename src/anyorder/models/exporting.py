"""Models as programs that need no anyorder: ``torch.export`` with tuples and values as inputs, for any number of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from anyorder.layouts import CompleteIndexSet, DenseIndexSet, Features, IndexSet, SparseIndexSet


def export(model: nn.Module, x: Features, target: IndexSet | None = None) -> ExportedProgram:
    """A model as a program of plain operators, for any number of tuples, nodes and graphs.

    The program finds its way among the tuples by itself: plans are part of it. ``torch.export.save`` writes it to a file,
    which ``torch.export.load`` runs without this library; ``torch.onnx.export`` takes it, too. It answers with the values
    of the output, in evaluation mode, and does not check its inputs.

    >>> from anyorder import Encoder, SparseIndexSet
    >>> nodes = SparseIndexSet(torch.tensor([[0], [1], [2]]), num_nodes=3)
    >>> model = Encoder(order_in=1, orders=(1,), channels_in=2, channels=4, channels_out=1, heads=1, head_channels=4)
    >>> program = export(model, Features(nodes, torch.randn(3, 2)))
    >>> tuples = torch.arange(5)[:, None]
    >>> program.module()(tuples=tuples, values=torch.randn(5, 2), node_graph=torch.tensor([0, 0, 0, 1, 1])).shape
    torch.Size([5, 1])

    Args:
        model: a model that maps features to features, as ``Encoder``.
        x: an example of its input, which says what the inputs of the program are. On a ``SparseIndexSet``: ``tuples``
            (entries, order), ``values`` (entries, channels) and ``node_graph`` (nodes,). On a ``DenseIndexSet``: ``values``
            (batch, node, ..., node, channels) and ``mask`` (batch, node). On a ``CompleteIndexSet``: ``values`` (entries,
            channels) and ``sizes`` (graphs,). Take one of several nodes and entries: sizes of 0 and 1 are not symbols.
        target: an example of the index set to write to. ``x.index.complete(order)`` stands for all tuples of its order; the
            tuples of another one are one more input, ``target`` (entries, order). Without one, rows of a lower order that
            follow from a sparse input are of its distinct tuples, sorted.
    """
    module, inputs = _module(model, x, target), _inputs(x, target)
    shapes = {name: dict.fromkeys(axes, Dim.DYNAMIC) for name, (_, axes) in inputs.items()}
    given = {name: tensor.detach() for name, (tensor, _) in inputs.items()}
    training = [part for part in model.modules() if part.training]
    module.eval()
    try:
        with torch.no_grad():
            return torch.export.export(module, (), given, dynamic_shapes=shapes)
    finally:
        for part in training:
            part.training = True


def _inputs(x: Features, target: IndexSet | None) -> dict[str, tuple[Tensor, range]]:
    """The inputs of a program and which of their axes have any size."""
    index = x.index
    if isinstance(index, DenseIndexSet):
        return {"values": (x.values, range(index.order + 1)), "mask": (index.mask, range(2))}
    if isinstance(index, CompleteIndexSet):
        return {"values": (x.values, range(1)), "sizes": (index.sizes, range(1))}
    found = {"tuples": index.tuples, "values": x.values, "node_graph": index.node_graph}
    if target is not None and not _is_complete(x, target):
        found["target"] = target.tuples
    return {name: (tensor, range(1)) for name, tensor in found.items()}


def _is_complete(x: Features, target: IndexSet) -> bool:
    """Whether a target has all tuples of its order; where the nodes of a graph stand apart, it is a sparse set of them."""
    return isinstance(target, CompleteIndexSet) or target is x.index._cache.get(("complete", target.order))


def _module(model: nn.Module, x: Features, target: IndexSet | None) -> nn.Module:
    if not isinstance(x, Features):
        raise TypeError(f"x must be Features, an example of the model's input, got {type(x).__name__}")
    whole = target.order if target is not None and _is_complete(x, target) else None
    if isinstance(x.index, SparseIndexSet):
        return SparseModel(model, type(x.index), whole)
    if not isinstance(x.index, CompleteIndexSet):
        raise TypeError(f"can only export a model on a sparse, dense or complete index set, got {type(x.index).__name__}")
    if target is not None and whole is None:
        raise TypeError(f"a model on a {type(x.index).__name__} writes to complete index sets, got {type(target).__name__}")
    return (DenseModel if isinstance(x.index, DenseIndexSet) else CompleteModel)(model, x.order, whole)


def _answer(model: nn.Module, index: IndexSet, values: Tensor, target: IndexSet | None) -> Tensor:
    made: Features = model(Features.of_rows(index, index.flatten(values)), target)
    return made.values


class SparseModel(nn.Module):
    """A model on tuples, with tensors as inputs; ``whole`` is the order of a complete target."""

    def __init__(self, model: nn.Module, kind: type[SparseIndexSet], whole: int | None) -> None:
        super().__init__()
        self.model, self.kind, self.whole = model, kind, whole

    def forward(self, tuples: Tensor, values: Tensor, node_graph: Tensor, target: Tensor | None = None) -> Tensor:
        nodes: Any = {"num_nodes": node_graph.shape[0], "node_graph": node_graph}
        index = self.kind(tuples, **nodes)
        if self.whole is not None:
            return _answer(self.model, index, values, index.complete(self.whole))
        wanted = None if target is None else self.kind(target, num_graphs=index.num_graphs, **nodes)
        return _answer(self.model, index, values, wanted)


class DenseModel(nn.Module):
    """A model on grids, with tensors as inputs."""

    def __init__(self, model: nn.Module, order: int, whole: int | None) -> None:
        super().__init__()
        self.model, self.order, self.whole = model, order, whole

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        index = DenseIndexSet(self.order, mask)
        return _answer(self.model, index, values, None if self.whole is None else index.complete(self.whole))


class CompleteModel(DenseModel):
    """A model on all tuples of graphs, with tensors as inputs."""

    def forward(self, values: Tensor, sizes: Tensor) -> Tensor:
        index = CompleteIndexSet(self.order, sizes)
        return _answer(self.model, index, values, None if self.whole is None else index.complete(self.whole))
