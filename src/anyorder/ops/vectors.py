"""Products of narrow vectors in Numba's loops, written in vector registers.

Left to itself the compiler unrolls a loop over eight channels and then looks for vectors among the scalars. This takes it
seconds, and fails where two arrays might overlap or single numbers pass through a formula. Here sums stay in registers until
they are whole, and formulas are applied to registers. Lengths are constants; arguments are pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from anyorder.extras import require

numba: Any = require("numba", "fast")
extending: Any = require("numba.extending", "fast")
cgutils: Any = require("numba.core.cgutils", "fast")
ir: Any = require("llvmlite.ir", "fast")
REGISTER = 64  # bytes; where registers are shorter, two or four of them stand for one
SUMS = 4  # registers that are summed into at once: additions wait for each other within one
UNROLLED = 64  # products that are written one after the other; more are a loop


class Writer:
    """Writes the instructions of one call, on vectors of the numbers that its first argument points to."""

    def __init__(self, target: Any, builder: Any, signature: Any, given: Any) -> None:
        self.builder, self.given = builder, given
        self.number, self.size = target.get_data_type(signature.args[0].dtype), signature.args[0].dtype.bitwidth // 8
        self._types = [target.get_data_type(each.dtype) if hasattr(each, "dtype") else None for each in signature.args]
        self._sizes = [each.dtype.bitwidth // 8 if hasattr(each, "dtype") else 0 for each in signature.args]

    def _at(self, argument: int, place: Any) -> Any:
        place = place if isinstance(place, ir.Value) else ir.Constant(ir.IntType(64), place)
        return self.builder.gep(self.given[argument], [place], source_etype=self._types[argument])

    def read(self, argument: int, place: Any, width: int) -> Any:
        """A vector from where an argument points to; singles become doubles where the first argument has these."""
        kind = ir.VectorType(self._types[argument], width)
        where = self.builder.bitcast(self._at(argument, place), kind.as_pointer())
        return self._wide(self.builder.load(where, align=self._sizes[argument], typ=kind), ir.VectorType(self.number, width))

    def number_at(self, argument: int, place: Any) -> Any:
        """A single number from there."""
        where = self._at(argument, place)
        found = self.builder.load(where, align=self._sizes[argument], typ=self._types[argument])
        return self._wide(found, self.number)

    def _wide(self, value: Any, kind: Any) -> Any:
        return value if value.type == kind else self.builder.fpext(value, kind)

    def write(self, vector: Any, place: Any) -> None:
        """Store a vector where the first argument points to."""
        where = self.builder.bitcast(self._at(0, place), vector.type.as_pointer())
        self.builder.store(vector, where, align=self.size)

    def spread(self, number: Any, width: int) -> Any:
        """A vector of one number."""
        kind = ir.VectorType(self.number, width)
        nothing = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), width), None))

    def multiply_add(self, a: Any, b: Any, total: Any) -> Any:
        product = self.builder.fmul(a, b, flags=("contract",))
        return product if total is None else self.builder.fadd(total, product, flags=("contract",))

    def registers(self, length: int) -> Iterator[list[tuple[int, int]]]:
        """(first, width) of what fits into registers, some at a time."""
        parts, first, most = [], 0, REGISTER // self.size
        while first < length:
            width = min(most, 1 << (length - first).bit_length() - 1)
            parts.append((first, width))
            first += width
        for start in range(0, len(parts), SUMS):
            yield parts[start : start + SUMS]

    def all_registers(self, length: int) -> list[tuple[int, int]]:
        return [part for parts in self.registers(length) for part in parts]

    def place(self, row: Any, columns: int, column: int) -> Any:
        """Where an element of a matrix stands; the row may be that of a loop."""
        if isinstance(row, int):
            return row * columns + column
        begin = self.builder.mul(row, ir.Constant(row.type, columns))
        return self.builder.add(begin, ir.Constant(row.type, column))

    def total(self, vectors: list[Any]) -> Any:
        """The sum of all numbers in all vectors."""
        result = None
        for vector in vectors:
            name = f"llvm.vector.reduce.fadd.v{vector.type.count}f{8 * self.size}"
            kind = ir.FunctionType(self.number, [self.number, vector.type])
            add = cgutils.get_or_insert_function(self.builder.module, kind, name)
            start = ir.Constant(self.number, -0.0) if result is None else result
            result = self.builder.call(add, [start, vector], fastmath=("reassoc",))
        return result


def _product(write: Writer, start: Callable[..., Any] | None, x: int, matrix: int, rows: int, columns: int) -> None:
    """out[c] = start[c] + sum_r x[r] matrix[r, c]; x and matrix are numbers of arguments."""
    for parts in write.registers(columns):
        chains = max(1, SUMS // len(parts))
        sums: list[list[Any]] = [[None] * len(parts) for _ in range(chains)]
        if start is not None:
            sums[0] = [start(first, width) for first, width in parts]

        def row(r: Any, chain: list[Any], parts: list[tuple[int, int]] = parts) -> list[Any]:
            number = write.number_at(x, r)
            return [
                write.multiply_add(
                    write.spread(number, width), write.read(matrix, write.place(r, columns, first), width), total
                )
                for (first, width), total in zip(parts, chain, strict=True)
            ]

        looped = 0
        if rows * len(parts) > UNROLLED:
            looped = rows // chains * chains
            sums = _loop(write, rows // chains, sums, row, parts)
        for r in range(looped, rows):
            sums[r % chains] = row(r, sums[r % chains])
        for n, (first, _) in enumerate(parts):
            total, *others = [chain[n] for chain in sums if chain[n] is not None]
            for other in others:
                total = write.builder.fadd(total, other)
            write.write(total, first)


def _loop(write: Writer, turns: int, sums: list[list[Any]], row: Callable[..., Any], parts: list[tuple[int, int]]) -> Any:
    """The same sums by a loop, in each turn of which every chain takes a row."""
    builder, kinds = write.builder, [ir.VectorType(write.number, width) for _, width in parts]
    kept = [[cgutils.alloca_once(builder, kind) for kind in kinds] for _ in sums]  # which the compiler makes registers

    def load(rooms: list[Any]) -> list[Any]:
        return [builder.load(room, typ=kind) for room, kind in zip(rooms, kinds, strict=True)]

    for chain, rooms in zip(sums, kept, strict=True):
        for value, room, kind in zip(chain, rooms, kinds, strict=True):
            builder.store(ir.Constant(kind, None) if value is None else value, room)
    with cgutils.for_range(builder, ir.Constant(ir.IntType(64), turns)) as turn:
        first = builder.mul(turn.index, ir.Constant(ir.IntType(64), len(sums)))
        for n, rooms in enumerate(kept):
            made = row(builder.add(first, ir.Constant(ir.IntType(64), n)), load(rooms))
            for value, room in zip(made, rooms, strict=True):
                builder.store(value, room)
    return [load(rooms) for rooms in kept]


@extending.intrinsic(prefer_literal=True)
def product(context, out, x, matrix, rows, columns):  # type: ignore[no-untyped-def]
    """out[c] = sum_r x[r] matrix[r, c]."""

    def generate(target, *given):  # type: ignore[no-untyped-def]
        _product(Writer(target, *given), None, 1, 2, rows.literal_value, columns.literal_value)
        return target.get_dummy_value()

    return numba.types.void(out, x, matrix, rows, columns), generate


@extending.intrinsic(prefer_literal=True)
def product_from(context, out, scale, start, x, matrix, rows, columns):  # type: ignore[no-untyped-def]
    """out[c] = scale start[c] + sum_r x[r] matrix[r, c]."""

    def generate(target, *given):  # type: ignore[no-untyped-def]
        write = Writer(target, *given)

        def first(place: int, width: int) -> Any:
            return write.multiply_add(write.spread(write.given[1], width), write.read(2, place, width), None)

        _product(write, first, 3, 4, rows.literal_value, columns.literal_value)
        return target.get_dummy_value()

    return numba.types.void(out, out.dtype, start, x, matrix, rows, columns), generate


@extending.intrinsic(prefer_literal=True)
def add_outer(context, out, x, y, rows, columns):  # type: ignore[no-untyped-def]
    """out[r, c] += x[r] y[c]."""

    def generate(target, *given):  # type: ignore[no-untyped-def]
        write, height, length = Writer(target, *given), rows.literal_value, columns.literal_value
        for parts in write.registers(length):
            values = [write.read(2, first, width) for first, width in parts]

            def row(r: Any, parts: list[tuple[int, int]] = parts, values: list[Any] = values) -> None:
                number = write.number_at(1, r)
                for (first, width), value in zip(parts, values, strict=True):
                    place = write.place(r, length, first)
                    write.write(write.multiply_add(write.spread(number, width), value, write.read(0, place, width)), place)

            if height * len(parts) > UNROLLED:
                with cgutils.for_range(write.builder, ir.Constant(ir.IntType(64), height)) as turn:
                    row(turn.index)
            else:
                for r in range(height):
                    row(r)
        return target.get_dummy_value()

    return numba.types.void(out, x, y, rows, columns), generate


@extending.intrinsic(prefer_literal=True)
def add_scaled(context, out, scale, x, length):  # type: ignore[no-untyped-def]
    """out += scale x."""

    def generate(target, *given):  # type: ignore[no-untyped-def]
        write = Writer(target, *given)
        for first, width in write.all_registers(length.literal_value):
            spread, total = write.spread(write.given[1], width), write.read(0, first, width)
            write.write(write.multiply_add(spread, write.read(2, first, width), total), first)
        return target.get_dummy_value()

    return numba.types.void(out, out.dtype, x, length), generate


@extending.intrinsic(prefer_literal=True)
def scaled(context, out, scale, x, length):  # type: ignore[no-untyped-def]
    """out = scale x."""

    def generate(target, *given):  # type: ignore[no-untyped-def]
        write = Writer(target, *given)
        for first, width in write.all_registers(length.literal_value):
            write.write(write.multiply_add(write.spread(write.given[1], width), write.read(2, first, width), None), first)
        return target.get_dummy_value()

    return numba.types.void(out, out.dtype, x, length), generate


@extending.intrinsic(prefer_literal=True)
def dot(context, x, y, length):  # type: ignore[no-untyped-def]
    """sum_n x[n] y[n]."""

    def generate(target, *given):  # type: ignore[no-untyped-def]
        write = Writer(target, *given)
        sums: dict[tuple[int, int], Any] = {}
        for parts in write.registers(length.literal_value):
            for n, (first, width) in enumerate(parts):
                a, b = write.read(0, first, width), write.read(1, first, width)
                sums[n, width] = write.multiply_add(a, b, sums.get((n, width)))
        whole: dict[int, Any] = {}
        for (_, width), value in sums.items():
            whole[width] = value if width not in whole else write.builder.fadd(whole[width], value)
        return write.total([*whole.values()])

    return x.dtype(x, y, length), generate
