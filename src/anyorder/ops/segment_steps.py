"""The steps of segment linear attention on one group, as functions that Numba inlines into its loops."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

from anyorder.extras import require
from anyorder.ops import formulas, vectors
from anyorder.ops.activations import ACTIVATIONS, Activation
from anyorder.ops.formulas import FORMULAS, Numbers
from anyorder.ops.vectors import Writer, add_outer, add_scaled, dot, product, product_from, scaled

numba: Any = require("numba", "fast")
extending: Any = require("numba.extending", "fast")
cgutils: Any = require("numba.core.cgutils", "fast")
ir: Any = require("llvmlite.ir", "fast")
numba.config.SLP_VECTORIZE = 1  # heads are narrow: their loops are unrolled, and become vectors only so
OPTIONS = {"nogil": True, "cache": True, "fastmath": {"contract"}, "error_model": "numpy", "no_cfunc_wrapper": True}
AHEAD = 8  # rows from the one that is read to the one that is asked for
FEW_KEYS = 16  # of a group that may do without a state
_inline = numba.njit(inline="always", **OPTIONS)
# What needs no constants is left to LLVM, which inlines it as well: Numba copies the statements of a function to every place
# of a call and infers their types anew.
_scalar = numba.njit(forceinline=True, **OPTIONS)


@extending.intrinsic(prefer_literal=True)
def stack(context, size, like):  # type: ignore[no-untyped-def]
    """A pointer to room on the stack for ``size`` numbers of the type of ``like``, to which nothing else points."""

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        count = target.get_constant(numba.types.intp, size.literal_value)
        room = cgutils.alloca_once(builder, target.get_data_type(like.dtype), size=count)
        room.align = 64
        return room

    return numba.types.CPointer(like.dtype)(size, like), generate


@extending.intrinsic
def pointer(context, array, offset):  # type: ignore[no-untyped-def]
    """A pointer to an element of an array, or of what a pointer points to."""

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = arguments[0]
        if isinstance(signature.args[0], numba.types.Array):
            data = cgutils.create_struct_proxy(signature.args[0])(target, builder, value=data).data
        return builder.gep(data, [arguments[1]], source_etype=target.get_data_type(array.dtype))

    return numba.types.CPointer(array.dtype)(array, numba.types.intp), generate


@extending.intrinsic
def _prefetch(context, array, offset):  # type: ignore[no-untyped-def]
    """Ask for the cache line of an element; nothing happens where there is none."""

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = cgutils.create_struct_proxy(signature.args[0])(target, builder, value=arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, *[ir.IntType(32)] * 3])
        function = builder.module.declare_intrinsic("llvm.prefetch", (cgutils.voidptr_t,), kind)
        builder.call(function, [place, *map(ir.IntType(32), (0, 3, 1))])  # to read, to keep, data
        return target.get_dummy_value()

    return numba.types.void(array, numba.types.intp), generate


VERSION = zlib.crc32(b"".join(Path(file).read_bytes() for file in (__file__, formulas.__file__, vectors.__file__)))
"""Compiled loops are cached by their own file: a change of the steps must change a constant of theirs, too."""


def code_of(kind: str) -> int:
    """The constant that selects an activation in compiled loops."""
    return ACTIVATIONS[kind].code ^ VERSION


def _bound(kind: Any) -> Activation:
    """The formulas behind a constant, looked up when loops are compiled: those of others are no part of them."""
    found = next(each for name, each in ACTIVATIONS.items() if code_of(name) == kind.literal_value)
    return found.on(FORMULAS)


@extending.intrinsic(prefer_literal=True)
def _values(context, out, x, eps, length, KIND):  # type: ignore[no-untyped-def]
    """out = phi(x)."""

    def generate(target, *given):  # type: ignore[no-untyped-def]
        write, formula = Writer(target, *given), _bound(KIND).value
        for first, width in write.all_registers(length.literal_value):
            numbers = write.read(1, first, width), write.spread(write.given[2], width)
            write.write(formula(*(Numbers(write, each) for each in numbers)).value, first)
        return target.get_dummy_value()

    return numba.types.void(out, x, out.dtype, length, KIND), generate


@extending.intrinsic(prefer_literal=True)
def _gradients(context, out, grad, phi, eps, length, KIND):  # type: ignore[no-untyped-def]
    """The gradient of x from that of phi(x)."""

    def generate(target, *given):  # type: ignore[no-untyped-def]
        write, formula = Writer(target, *given), _bound(KIND).gradient
        for first, width in write.all_registers(length.literal_value):
            numbers = write.read(1, first, width), write.read(2, first, width), write.spread(write.given[3], width)
            write.write(formula(*(Numbers(write, each) for each in numbers)).value, first)
        return target.get_dummy_value()

    return numba.types.void(out, grad, phi, out.dtype, length, KIND), generate


@_scalar
def fetch(x, order, t, stride, at, length):  # type: ignore[no-untyped-def]
    """Ask for a row that will be read soon: rows of a group lie anywhere, and each would be waited for."""
    if t + AHEAD < len(order):
        row = order[t + AHEAD] * stride + at
        for n in range(0, length, 64 // x.itemsize):  # lines of 64 bytes
            _prefetch(x, row + n)


@_inline
def clear(numbers, length):  # type: ignore[no-untyped-def]
    values = numba.carray(numbers, (length,))
    for n in range(length):
        values[n] = 0


@_inline
def transpose(state, turned, one, M, V):  # type: ignore[no-untyped-def]
    """A state laid out as (channel, feature) and then (feature)."""
    old, new = numba.carray(state, (M * V,)), numba.carray(turned, (M * V,))
    for c in range(V):
        for m in range(M):
            new[c * M + m] = old[m * V + c]
    scaled(pointer(turned, M * V), one, pointer(state, M * V), M)


@_inline
def features(x, at, wt, eps, phi, D, M, KIND, TURNED):  # type: ignore[no-untyped-def]
    """phi(x) of one head: the activation KIND of w.x, or of x itself."""
    if TURNED:
        product(phi, pointer(x, at), pointer(wt, 0), D, M)
        _values(phi, phi, eps, M, KIND)
    else:
        _values(phi, pointer(x, at), eps, M, KIND)


@_inline
def features_backward(w, eps, phi, dphi, one, dx, D, M, KIND, TURNED, ADDED):  # type: ignore[no-untyped-def]
    """Gradient of x from that of phi(x), which is overwritten; ADDED to what is there."""
    if TURNED or ADDED:
        _gradients(dphi, dphi, phi, eps, M, KIND)
        if not TURNED:
            add_scaled(dx, one, dphi, M)
        elif ADDED:
            product_from(dx, one, dx, dphi, pointer(w, 0), M, D)
        else:
            product(dx, dphi, pointer(w, 0), M, D)
    else:
        _gradients(dx, dphi, phi, eps, M, KIND)


@_inline
def absorb(phi, value, one, state, M, V):  # type: ignore[no-untyped-def]
    """Add phi(k) v^T and phi(k) to a state, laid out as (feature, channel) and then (feature)."""
    add_outer(state, phi, value, M, V)
    add_scaled(pointer(state, M * V), one, phi, M)


@_inline
def absorb_turned(phi, value, one, turned, M, V):  # type: ignore[no-untyped-def]
    """The same for a state laid out as (channel, feature)."""
    add_outer(turned, value, phi, V, M)
    add_scaled(pointer(turned, M * V), one, phi, M)


@_inline
def answer(phi, state, local, M, V):  # type: ignore[no-untyped-def]
    """phi(q)^T state into ``local``; returns the norm."""
    product(local, phi, state, M, V)
    return dot(phi, pointer(state, M * V), M)


@_inline
def pairs(phi, others, count, v, vs, order, first, at, local, zero, M, V):  # type: ignore[no-untyped-def]
    """What a few keys answer, without a state: adds phi(q).phi(k) v to ``local``; returns the sum of phi(q).phi(k)."""
    norm = zero
    for n in range(count):
        weight = dot(phi, pointer(others, n * M), M)
        norm += weight
        add_scaled(local, weight, pointer(v, order[first + n] * vs + at), V)
    return norm


@_inline
def ask_pairs(phi, dphi, others, dothers, count, v, vs, order, first, at, local, dnorm, dvalues, M, V):  # type: ignore[no-untyped-def]
    """Gradients of phi(q), phi(k) and v, added up, from that of the answer of a few keys."""
    for n in range(count):
        other = pointer(others, n * M)
        weight = dot(phi, other, M)
        grad = dot(local, pointer(v, order[first + n] * vs + at), V) + dnorm
        add_scaled(dphi, grad, other, M)
        add_scaled(pointer(dothers, n * M), grad, phi, M)
        add_scaled(pointer(dvalues, n * V), weight, local, V)


@_inline
def write(local, norm, sums, norms, place, normalize, one, sign, tiny, V, ADDED):  # type: ignore[no-untyped-def]
    """The answer of a query and its norm; ADDED with a sign to what is there."""
    if ADDED:
        add_scaled(pointer(sums, place * V), sign, local, V)
        norms[place] += sign * norm
    else:
        scaled(pointer(sums, place * V), one / max(norm, tiny) if normalize else one, local, V)
        norms[place] = norm


@_scalar
def nothing(sums, norms, order, first, last, c, C, H, V):  # type: ignore[no-untyped-def]
    """What queries of a class receive that have no key."""
    for t in range(first, last):
        place = (order[t] * C + c) * H
        for n in range(place * V, (place + H) * V):
            sums[n] = 0
        for n in range(place, place + H):
            norms[n] = 0


@_inline
def incoming(sums, norms, grad_sums, grad_norms, place, normalize, one, sign, tiny, local, V, ADDED):  # type: ignore[no-untyped-def]
    """Gradient of the undivided sums into ``local``; returns that of the norm."""
    grads = pointer(grad_sums, place * V)
    if ADDED:
        scaled(local, sign, grads, V)
        return sign * grad_norms[place]
    if normalize:
        norm = norms[place]
        scale = one / max(norm, tiny)
        total = dot(grads, pointer(sums, place * V), V)
        scaled(local, scale, grads, V)
        return -total * scale if norm > tiny else one - one
    scaled(local, one, grads, V)
    return grad_norms[place]


@_inline
def ask(phi, dphi, local, dnorm, turned, dstate, M, V):  # type: ignore[no-untyped-def]
    """Gradients of phi(q) and of the state, which is given by (channel, feature), from that of an answer."""
    product_from(dphi, dnorm, pointer(turned, M * V), local, turned, V, M)
    add_outer(dstate, phi, local, M, V)
    add_scaled(pointer(dstate, M * V), dnorm, phi, M)


@_inline
def give(phi, dphi, value, one, dstate, turned, dvalue, M, V, ADDED):  # type: ignore[no-untyped-def]
    """Gradients of phi(k) and v from that of the state."""
    if ADDED:
        product_from(dvalue, one, dvalue, phi, dstate, M, V)
    else:
        product(dvalue, phi, dstate, M, V)
    product_from(dphi, one, pointer(dstate, M * V), value, turned, V, M)


@_scalar
def few(keys, queries, M, V):  # type: ignore[no-untyped-def]
    """Whether all pairs of some keys and queries take much less than a state; a single query takes many keys in turns."""
    return (keys <= FEW_KEYS or queries == 1) and 2 * keys * queries * (M + V) <= (keys + queries) * M * V
