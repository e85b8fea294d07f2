"""Rows that classes read: gathered, multiplied and added up in as few passes over memory as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from anyorder.algebra import SetPartition
from anyorder.algebra.program import Project
from anyorder.layouts import Spread
from anyorder.layouts.memory import is_exported, is_transformed, with_zeros
from anyorder.ops.backends import INSTALLED, Compiled, backend_of, choice, is_batched
from anyorder.ops.compiling import build_rows, build_rows_ahead
from anyorder.ops.operators import Operator

Parts = dict[SetPartition, Tensor]
"""Rows by pattern."""
FEW = 2**16
"""Numbers below which the call of compiled loops takes longer than it saves."""
NARROW = 8
"""Columns up to which the library's products prefer a matrix column by column."""
compiled = Compiled(build_rows, build_rows_ahead)


def project(
    step: Project, known: tuple[int, Sequence[Spread]], parts: Parts, weight: Tensor | None, bias: Tensor | None
) -> Tensor:
    """Rows (entry, out) of one pattern: input rows ``parts`` read by the classes of a step, with ``weight[class, in, out]``.

    ``known`` is the number of entries, and for each class which input row each of them reads.
    """
    count, reads = known
    if weight is None:
        assert bias is not None
        return bias.expand(count, -1)
    if len(step.whole) == len(step.classes):
        wide = beside([(parts[cls.source], read) for cls, read in zip(step.classes, reads, strict=True)])
        return product(wide, weight.flatten(0, 1), bias)
    tall, each = _apart(weight, step.whole)
    # the bias goes with the least rows, if each output entry reads one of them
    host: int | None = None
    total: Tensor | None = None
    for n in each:
        if reads[n].missing is None:
            host = n
            break
    if step.whole:
        wide = beside([(parts[step.classes[n].source], reads[n]) for n in step.whole])
        total = product(wide, tall[0] if len(tall) == 1 else torch.cat(tall), bias if host is None else None)
    products = [(product(parts[step.classes[n].source], w, bias if n == host else None), reads[n]) for n, w in each.items()]
    total = add_spread(total, products)
    assert total is not None
    return total + bias if bias is not None and not step.whole and host is None else total


def _apart(weight: Tensor, same: Sequence[int]) -> tuple[list[Tensor], dict[int, Tensor]]:
    """The matrices of some classes, neighbours as one tall matrix, and each of the others by its number.

    All are cut at once, so that their gradients are put together once; each index would have a gradient of the whole size.
    """
    runs: list[list[int]] = []
    for n in range(len(weight)):
        if n in same and runs and runs[-1][-1] in same:
            runs[-1].append(n)
        else:
            runs.append([n])
    tall: list[Tensor] = []
    each: dict[int, Tensor] = {}
    for run, piece in zip(runs, weight.split([len(run) for run in runs]), strict=True):
        if run[0] in same:
            tall.append(piece.flatten(0, 1))
        else:
            each[run[0]] = piece[0]
    return tall, each


def product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``rows @ weight + bias``.

    >>> product(torch.ones(2, 3), torch.ones(3, 1)).flatten().tolist()
    [3.0, 3.0]
    """
    if weight.shape[1] <= NARROW < weight.shape[0]:
        weight = _laid_out(rows, weight)
    return rows @ weight if bias is None else torch.addmm(bias, rows, weight)


def _laid_out(rows: Tensor, weight: Tensor) -> Tensor:
    """A matrix with few columns, column by column: products and gradients with it take a third to a half of the time."""
    if torch.compiler.is_compiling() or rows.numel() < FEW:
        return weight
    return weight.t().contiguous().t()


def add_product(total: Tensor, rows: Tensor, weight: Tensor) -> Tensor:
    """``total + rows @ weight``, which may be written over ``total``: it must be the caller's own."""
    if weight.shape[1] <= NARROW < weight.shape[0]:
        weight = _laid_out(rows, weight)
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or torch.is_autocast_enabled(total.device.type):
        return torch.addmm(total, rows, weight)
    return total.addmm_(rows, weight)


def read_rows(values: Tensor, spread: Spread) -> Tensor:
    """What a spread reads of values (row, ...), zero where it reads none.

    >>> read_rows(torch.tensor([[1.0], [2.0], [3.0]]), Spread.build(torch.tensor([2, -1, 2]), 3)).flatten().tolist()
    [3.0, 0.0, 3.0]
    """
    if spread.rows is None:
        return values
    if is_exported():  # those that are missing read a row of zeros at the end
        return with_zeros(values).index_select(0, spread.rows)
    if spread.missing is None:
        return values.index_select(0, spread.rows)
    if values.shape[0] == 0:  # zeros that still belong to the graph of ``values``
        return values.new_zeros(len(spread.rows), *values.shape[1:]) + values.sum(0)
    shape = (-1, *[1] * (values.ndim - 1))
    return values.index_select(0, spread.rows).masked_fill(spread.missing.view(shape), 0)


def add_spread(total: Tensor | None, parts: Sequence[tuple[Tensor, Spread]]) -> Tensor | None:
    """``total`` and what each spread reads of its values (row, channel); None if there is nothing.

    The sum may be written over ``total``, which must be the caller's own.

    >>> spread = Spread.build(torch.tensor([1, 0, -1]), 2)
    >>> add_spread(torch.ones(3, 1), [(torch.tensor([[10.0], [20.0]]), spread)]).flatten().tolist()
    [21.0, 11.0, 1.0]
    """
    read = []
    for values, spread in parts:
        if spread.rows is None:
            total = values if total is None else total + values
        else:
            read.append((values, spread))
    if not read:
        return total
    if is_compiled(read[0][0], read[0][1].rows.numel() * read[0][0].shape[1]):  # type: ignore[union-attr]
        tables = [values.contiguous() for values, _ in read]
        rows = [_rows(spread.signed, len(values)) for values, spread in read]
        if total is not None and not torch.is_grad_enabled() and not torch.compiler.is_compiling():
            total = total.contiguous()
            _add(total, tables, rows, total)
            return total
        return _gather_add(total, tables, rows)
    for values, spread in read:
        part = read_rows(values, spread)
        total = part if total is None else total + part
    return total


def beside(parts: Sequence[tuple[Tensor, Spread]]) -> Tensor:
    """What spreads that read no row twice read of their values (row, channel), side by side.

    >>> swap = Spread.build(torch.tensor([1, 0]), 2, one_to_one=True)
    >>> beside([(torch.tensor([[1.0], [2.0]]), swap), (torch.tensor([[3.0], [4.0]]), Spread(None, None))]).tolist()
    [[2.0, 3.0], [1.0, 4.0]]
    """
    if len(parts) == 1 or not is_compiled(parts[0][0], len(parts) * parts[0][0].numel()):
        read = [read_rows(values, spread) for values, spread in parts]
        return read[0] if len(read) == 1 else torch.cat(read, 1)
    tables = [values.contiguous() for values, _ in parts]
    rows = [_rows(spread.signed, len(values)) for values, spread in parts]
    inverses = [_rows(spread.inverse, len(values)) for values, spread in parts]
    return _gather_beside(tables, rows, inverses)


def highest_of(rows: Tensor, groups: Tensor, num_groups: int) -> Tensor:
    """(group, ...): the highest row of each group, number by number."""
    index = groups.view(-1, *[1] * (rows.ndim - 1)).expand_as(rows)
    return rows.new_full((num_groups, *rows.shape[1:]), -torch.inf).scatter_reduce(0, index, rows, "amax")


def is_compiled(values: Tensor, size: int) -> bool:
    """Whether so many numbers of the type of a tensor get the operators that Numba compiles."""
    if is_exported() or not INSTALLED["numba"] or values.dtype not in (torch.float32, torch.float64):
        return False
    if torch.compiler.is_compiling():  # a compiled graph is for any number
        return backend_of(values) in ("numba", "products")
    if choice.backend != "auto":
        return choice.backend in ("numba", "products") and not is_transformed()
    return size >= FEW and values.device.type == "cpu" and choice.compiling != "never" and not is_transformed()


def has_loops(values: Tensor) -> bool:
    """Whether operators on rows of the type of a tensor have their loops by now; until then they do without.

    They are operators before that, too: a layer that is recomputed meanwhile does the same again.
    """
    return choice.backend in ("numba", "products") or compiled.get(str(values.dtype).removeprefix("torch.")) is not None


def _rows(rows: Tensor | None, count: int) -> Tensor:
    return torch.arange(count) if rows is None else rows


def _add_up(base: Tensor | None, tables: Sequence[Tensor], rows: Sequence[Tensor]) -> Tensor:
    """base[n] + sum over t of tables[t][rows[t][n]], nothing for a row of -1."""
    out = tables[0].new_empty(len(rows[0]), tables[0].shape[1])
    _add(base, tables, rows, out)
    return out


def _add(base: Tensor | None, tables: Sequence[Tensor], rows: Sequence[Tensor], out: Tensor) -> None:
    """Fill ``out``, which may be ``base``."""
    if not has_loops(out):
        if base is not out:
            out.copy_(base) if base is not None else out.zero_()
        for table, read in zip(tables, rows, strict=True):
            there = (read >= 0).nonzero().flatten()
            out.index_add_(0, there, table.detach()[read[there]])
        return
    from anyorder.ops import gather_cpu

    room = out.detach().numpy()
    known = room if base is out else None if base is None else base.contiguous().detach().numpy()
    reads = [(table.detach().numpy(), read.numpy()) for table, read in zip(tables, rows, strict=True)]
    gather_cpu.gather(known, reads, room)


def _setup_add(ctx: Any, inputs: Sequence[Any], output: Tensor) -> None:
    base, tables, rows = inputs
    ctx.has_base, ctx.counts = base is not None, [table.shape[0] for table in tables]
    ctx.save_for_backward(*rows)


def _gradient_add(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    rows = list(ctx.saved_tensors)
    if is_batched(grad):  # operators that return lists cannot be repeated for each of a batch
        sums = [_sums(grad, read, count) for read, count in zip(rows, ctx.counts, strict=True)]
    else:
        sums = [*_scatter_sums(grad, rows, ctx.counts)]
    return grad if ctx.has_base else None, sums, [None] * len(rows)


def _sums(grad: Tensor, rows: Tensor, count: int) -> Tensor:
    """For each row of a table, the sum of the rows of ``grad`` that name it."""
    there = (rows >= 0).nonzero().flatten()
    return grad.new_zeros(count, grad.shape[1]).index_add(0, rows[there], grad.index_select(0, there))


_gather_add = Operator(
    "gather_add",
    _add_up,
    lambda base, tables, rows: tables[0].new_empty(rows[0].shape[0], tables[0].shape[1]),
    setup=_setup_add,
    gradient=_gradient_add,
)


def _scatter(grad: Tensor, rows: Sequence[Tensor], counts: Sequence[int]) -> list[Tensor]:
    """For each table of so many rows, the sums of the rows of ``grad`` that name the same row of it."""
    if not has_loops(grad):
        return [_sums(grad.detach(), read, count) for read, count in zip(rows, counts, strict=True)]
    from anyorder.ops import gather_cpu

    out = [grad.new_zeros(count, grad.shape[1]) for count in counts]
    sums = [(read.numpy(), table.numpy()) for read, table in zip(rows, out, strict=True)]
    gather_cpu.scatter(grad.contiguous().detach().numpy(), sums)
    return out


def _setup_scatter(ctx: Any, inputs: Sequence[Any], output: list[Tensor]) -> None:
    ctx.save_for_backward(*inputs[1])


def _gradient_scatter(ctx: Any, *grads: Any) -> tuple[Any, ...]:
    rows = list(ctx.saved_tensors)
    return _gather_add(None, [*grads[0]] if isinstance(grads[0], list | tuple) else [*grads], rows), [None] * len(rows), None


_scatter_sums = Operator(
    "scatter_sums",
    _scatter,
    lambda grad, rows, counts: [grad.new_empty(count, grad.shape[1]) for count in counts],
    setup=_setup_scatter,
    gradient=_gradient_scatter,
)


def _side_by_side(tables: Sequence[Tensor], rows: Sequence[Tensor], inverses: Sequence[Tensor]) -> Tensor:
    """tables[t][rows[t][n]] side by side, zero for a row of -1; ``inverses`` are for the gradient."""
    if not has_loops(tables[0]):
        return torch.cat([_read(table, read) for table, read in zip(tables, rows, strict=True)], 1)
    from anyorder.ops import gather_cpu

    width = tables[0].shape[1]
    out = tables[0].new_empty(len(rows[0]), width * len(tables))
    for n, (table, read) in enumerate(zip(tables, rows, strict=True)):
        gather_cpu.gather_part(table.detach().numpy(), read.numpy(), out.numpy(), 0, n * width, width)
    return out


def _setup_beside(ctx: Any, inputs: Sequence[Any], output: Tensor) -> None:
    tables, _, inverses = inputs
    ctx.width = tables[0].shape[1]
    ctx.save_for_backward(*inverses)


def _gradient_beside(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    inverses, width = ctx.saved_tensors, ctx.width
    tables = [_gather_part(grad, rows, n * width, width) for n, rows in enumerate(inverses)]
    return tables, [None] * len(inverses), [None] * len(inverses)


_gather_beside = Operator(
    "gather_beside",
    _side_by_side,
    lambda tables, rows, inverses: tables[0].new_empty(rows[0].shape[0], tables[0].shape[1] * len(tables)),
    setup=_setup_beside,
    gradient=_gradient_beside,
)


def _part(grad: Tensor, rows: Tensor, first: int, width: int) -> Tensor:
    """Some columns of ``grad[rows]``, zero for a row of -1."""
    if not has_loops(grad):
        return _read(grad[:, first : first + width], rows)
    from anyorder.ops import gather_cpu

    out = grad.new_empty(len(rows), width)
    gather_cpu.gather_part(grad.contiguous().detach().numpy(), rows.numpy(), out.numpy(), first, 0, width)
    return out


def _read(table: Tensor, rows: Tensor) -> Tensor:
    """Rows of a table, zero for a row of -1."""
    out = table.new_zeros(len(rows), table.shape[1])
    there = (rows >= 0).nonzero().flatten()
    return out.index_copy_(0, there, table.detach()[rows[there]])


def _setup_part(ctx: Any, inputs: Sequence[Any], output: Tensor) -> None:
    grad, rows, ctx.first, ctx.width = inputs
    ctx.shape = grad.shape
    ctx.save_for_backward(rows)


def _gradient_part(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    [rows] = ctx.saved_tensors
    sums = _sums(grad, rows, ctx.shape[0])
    return functional.pad(sums, (ctx.first, ctx.shape[1] - ctx.first - ctx.width)), None, None, None


_gather_part = Operator(
    "gather_part",
    _part,
    lambda grad, rows, first, width: grad.new_empty(rows.shape[0], width),
    setup=_setup_part,
    gradient=_gradient_part,
)
