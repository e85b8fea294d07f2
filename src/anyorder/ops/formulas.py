"""Formulas of activations on vector registers: arithmetic writes instructions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from anyorder.extras import require
from anyorder.ops.vectors import Writer

ir: Any = require("llvmlite.ir", "fast")


class Numbers:
    """A vector in a formula: arithmetic and comparisons write instructions."""

    def __init__(self, write: Writer, value: Any) -> None:
        self.write, self.value = write, value

    def like(self, other: Any) -> Any:
        """The instructions of another vector, or of a number of Python as one."""
        if isinstance(other, Numbers):
            return other.value
        number = ir.Constant(self.write.number, float(other))
        return self.write.spread(number, self.value.type.count)

    def _made(self, how: str, first: Any, second: Any) -> Numbers:
        return Numbers(self.write, getattr(self.write.builder, how)(first, second, flags=("contract",)))

    def _compared(self, how: str, other: Any) -> Any:
        return self.write.builder.fcmp_ordered(how, self.value, self.like(other))

    def __add__(self, other: Any) -> Numbers:
        return self._made("fadd", self.value, self.like(other))

    def __mul__(self, other: Any) -> Numbers:
        return self._made("fmul", self.value, self.like(other))

    def __sub__(self, other: Any) -> Numbers:
        return self._made("fsub", self.value, self.like(other))

    def __rsub__(self, other: Any) -> Numbers:
        return self._made("fsub", self.like(other), self.value)

    def __truediv__(self, other: Any) -> Numbers:
        return self._made("fdiv", self.value, self.like(other))

    def __rtruediv__(self, other: Any) -> Numbers:
        return self._made("fdiv", self.like(other), self.value)

    def __neg__(self) -> Numbers:
        return Numbers(self.write, self.write.builder.fneg(self.value))

    def __abs__(self) -> Numbers:
        return where(self < 0, -self, self)

    def __pow__(self, exponent: int) -> Numbers:
        if not isinstance(exponent, int) or exponent < 1:
            raise TypeError(f"formulas may take whole powers from 1 on, got {exponent!r}")
        return self if exponent == 1 else self * self ** (exponent - 1)

    def __gt__(self, other: Any) -> Any:
        return self._compared(">", other)

    def __lt__(self, other: Any) -> Any:
        return self._compared("<", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared(">=", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("<=", other)

    __radd__, __rmul__ = __add__, __mul__


def where(condition: Any, yes: Any, no: Any) -> Numbers:
    """One of two numbers."""
    known = yes if isinstance(yes, Numbers) else no
    return Numbers(known.write, known.write.builder.select(condition, known.like(yes), known.like(no)))


def exp(x: Numbers) -> Numbers:
    """2^n e^r with n = round(x / log 2), the rest by its series; the C library's function takes one number at a time."""
    single = x.write.size == 4
    digits, bias, least, most = (23, 127, -104.0, 89.0) if single else (52, 1023, -746.0, 710.0)
    high, low = (0.693359375, -2.12194440e-4) if single else (0.693145751953125, 1.42860682030941723212e-6)
    x = where(x < least, least, where(x > most, most, x))  # there it is 0 and infinite; NaN stays
    large = 1.5 * 2.0**digits  # a number that is added to it loses its fraction
    shifted = x * math.log2(math.e) + large
    n = shifted - large
    r = x - n * high - n * low  # ``high`` has few digits: n times it is exact
    terms = 7 if single else 13
    series = r * (1 / math.factorial(terms)) + 1 / math.factorial(terms - 1)
    for term in range(terms - 2, -1, -1):
        series = series * r + 1 / math.factorial(term)
    half, rest = _halves(shifted, shifted.like(large))
    return series * _power_of_2(x, half, digits, bias) * _power_of_2(x, rest, digits, bias)


def _halves(shifted: Numbers, large: Any) -> tuple[Any, Any]:
    """n as whole numbers whose sum it is: 2^n may be too large or too small for one number where the result is not."""
    builder, value = shifted.write.builder, shifted.value
    whole = ir.VectorType(ir.IntType(8 * shifted.write.size), value.type.count)
    n = builder.sub(builder.bitcast(value, whole), builder.bitcast(large, whole))
    half = builder.ashr(n, _filled(whole, 1))
    return half, builder.sub(n, half)


def _power_of_2(x: Numbers, n: Any, digits: int, bias: int) -> Numbers:
    builder = x.write.builder
    bits = builder.shl(builder.add(n, _filled(n.type, bias)), _filled(n.type, digits))
    return Numbers(x.write, builder.bitcast(bits, x.value.type))


def _filled(kind: Any, number: int) -> Any:
    return ir.Constant(kind, [number] * kind.count)


FORMULAS: dict[str, Callable[..., Any]] = {
    "where": where,
    "exp": exp,
    "positive": lambda x: where(x < 0, 0, x),  # NaN stays
    "where_above": lambda grad, x, bound: where(x > bound, grad, 0),
}
"""What formulas of activations may call, for vectors."""
