"""The steps of segment linear attention on one group, as functions that Numba inlines into its loops."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.extras import require
from anyorder.ops.activations import ACTIVATIONS, Activation

numba: Any = require("numba", "fast")
extending: Any = require("numba.extending", "fast")
cgutils: Any = require("numba.core.cgutils", "fast")
ir: Any = require("llvmlite.ir", "fast")
numba.config.SLP_VECTORIZE = 1  # heads are narrow: their loops are unrolled, and become vectors only so
OPTIONS = {"nogil": True, "cache": True, "fastmath": {"contract"}, "error_model": "numpy"}
PART = {"forceinline": True, "fastmath": {"contract"}, "error_model": "numpy"}
AHEAD = 8  # rows from the one that is read to the one that is asked for
FEW_KEYS = 16  # of a group that may do without a state
_inline = numba.njit(inline="always", **OPTIONS)
# What has no loop over channels is left to LLVM, which inlines it as well: Numba copies the statements of a function to
# every place of a call and infers their types anew, which was more than half of the time to compile.
_scalar = numba.njit(forceinline=True, **OPTIONS)
# Every inner loop adds a multiple of one row to another, along memory. Leave to reorder sums is given to dot products alone:
# elsewhere the compiler would use it to sum across rows instead, which is many times slower.
_reorder = numba.njit(nogil=True, cache=True, fastmath={"contract", "reassoc"}, error_model="numpy")


@extending.intrinsic(prefer_literal=True)
def stack(context, size, like):  # type: ignore[no-untyped-def]
    """A pointer to room on the stack for ``size`` numbers of the type of ``like``.

    The compiler knows that nothing else points there, and only so dares to keep sums in vector registers.
    """

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        count = target.get_constant(numba.types.intp, size.literal_value)
        room = cgutils.alloca_once(builder, target.get_data_type(like.dtype), size=count)
        room.align = 64
        return room

    return numba.types.CPointer(like.dtype)(size, like), generate


@extending.intrinsic
def pointer(context, array, offset):  # type: ignore[no-untyped-def]
    """A pointer to an element, so that what follows is indexed from 0 without checks for negative indices."""

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = cgutils.create_struct_proxy(signature.args[0])(target, builder, value=arguments[0]).data
        return builder.gep(data, [arguments[1]])

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


VERSION = zlib.crc32(Path(__file__).read_bytes())
"""Compiled loops are cached by their own file: a change of the steps must change a constant of theirs, too."""


def code_of(kind: str) -> int:
    """The constant that selects an activation in compiled loops."""
    return ACTIVATIONS[kind].code ^ VERSION


@_scalar
def _where(condition, yes, no):  # type: ignore[no-untyped-def]
    return yes if condition else no


@_scalar
def _positive(x):  # type: ignore[no-untyped-def]
    return max(x, 0)


@_scalar
def _where_above(grad, x, bound):  # type: ignore[no-untyped-def]
    return grad if x > bound else 0


def _value(s, eps, KIND):  # type: ignore[no-untyped-def]
    """phi(s) of the activation with this code."""
    raise NotImplementedError


def _gradient(grad, phi, eps, KIND):  # type: ignore[no-untyped-def]
    """The gradient of s from that of phi(s)."""
    raise NotImplementedError


@extending.overload(_value, prefer_literal=True, jit_options=PART)
def _(s, eps, KIND):  # type: ignore[no-untyped-def]
    formula = _scalar(_bound(KIND).value)
    return lambda s, eps, KIND: formula(s, eps)


@extending.overload(_gradient, prefer_literal=True, jit_options=PART)
def _(grad, phi, eps, KIND):  # type: ignore[no-untyped-def]
    formula = _scalar(_bound(KIND).gradient)
    return lambda grad, phi, eps, KIND: formula(grad, phi, eps)


def _bound(kind: Any) -> Activation:
    """The formulas behind a constant, looked up when loops are compiled: those of others are no part of them."""
    names = {"where": _where, "exp": np.exp, "positive": _positive, "where_above": _where_above}
    found = next(each for name, each in ACTIVATIONS.items() if code_of(name) == kind.literal_value)
    return found.on(names)


@_reorder
def _dot(a, b, n):  # type: ignore[no-untyped-def]
    total = a[0] * b[0]
    for i in range(1, n):
        total += a[i] * b[i]
    return total


@_scalar
def fetch(x, order, t, stride, at, length):  # type: ignore[no-untyped-def]
    """Ask for a row that will be read soon: rows of a group lie anywhere, and each would be waited for."""
    if t + AHEAD < len(order):
        row = order[t + AHEAD] * stride + at
        for n in range(0, length, 64 // x.itemsize):  # lines of 64 bytes
            _prefetch(x, row + n)


@_inline
def transpose(state, s, turned, M, V):  # type: ignore[no-untyped-def]
    """The (feature, channel) part of a state as (channel, feature)."""
    state = numba.carray(pointer(state, s), (M * V + M,))
    for m in range(M):
        for c in range(V):
            turned[c * M + m] = state[m * V + c]


@_inline
def features(x, at, wt, eps, phi, D, M, KIND, TURNED):  # type: ignore[no-untyped-def]
    """phi(x) of one head: the activation KIND of w.x, or of x itself."""
    x = numba.carray(pointer(x, at), (D,))
    if TURNED:
        for m in range(M):
            phi[m] = 0
        for d in range(D):
            a = x[d]
            for m in range(M):
                phi[m] += a * wt[d * M + m]
        for m in range(M):
            phi[m] = _value(phi[m], eps, KIND)
    else:
        for m in range(M):
            phi[m] = _value(x[m], eps, KIND)


@_inline
def features_of_few(x, stride, at, order, first, last, wt, eps, phis, D, M, KIND, TURNED):  # type: ignore[no-untyped-def]
    """phi(x) of one head for a few rows, one after the other."""
    for n in range(last - first):
        phi = numba.carray(pointer(phis, n * M), (M,))
        features(x, order[first + n] * stride + at, wt, eps, phi, D, M, KIND, TURNED)


@_inline
def features_backward(x, at, w, eps, phi, dphi, local, dx, to, D, M, KIND, TURNED):  # type: ignore[no-untyped-def]
    """Gradient of x from that of phi(x)."""
    dx = numba.carray(pointer(dx, to), (D,))
    if TURNED:
        for m in range(M):
            dphi[m] = _gradient(dphi[m], phi[m], eps, KIND)
        for d in range(D):
            local[d] = 0
        for m in range(M):
            a = dphi[m]
            for d in range(D):
                local[d] += a * w[m * D + d]
        for d in range(D):
            dx[d] = local[d]
    else:
        for m in range(M):
            dx[m] = _gradient(dphi[m], phi[m], eps, KIND)


@_inline
def absorb(phi, v, at, state, s, M, V):  # type: ignore[no-untyped-def]
    """Add phi(k) v^T and phi(k) to a state, laid out as (feature, channel) and then (feature)."""
    v, state = numba.carray(pointer(v, at), (V,)), numba.carray(pointer(state, s), (M * V + M,))
    for m in range(M):
        a = phi[m]
        for c in range(V):
            state[m * V + c] += a * v[c]
        state[M * V + m] += a


@_inline
def answer(phi, state, s, local, M, V):  # type: ignore[no-untyped-def]
    """phi(q)^T state into ``local``; returns the norm."""
    state = numba.carray(pointer(state, s), (M * V + M,))
    norm = _dot(phi, numba.carray(pointer(state, M * V), (M,)), M)
    for c in range(V):
        local[c] = 0
    for m in range(M):
        a = phi[m]
        for c in range(V):
            local[c] += a * state[m * V + c]
    return norm


@_inline
def pairs(phi, others, count, v, vs, order, first, at, local, M, V):  # type: ignore[no-untyped-def]
    """What a few keys answer, without a state: adds phi(q).phi(k) v to ``local``; returns the sum of phi(q).phi(k)."""
    norm = phi[0] * 0
    for n in range(count):
        value = numba.carray(pointer(v, order[first + n] * vs + at), (V,))
        weight = _dot(phi, numba.carray(pointer(others, n * M), (M,)), M)
        norm += weight
        for c in range(V):
            local[c] += weight * value[c]
    return norm


@_inline
def ask_pairs(phi, dphi, others, dothers, count, v, vs, order, first, at, local, dnorm, dvalues, M, V):  # type: ignore[no-untyped-def]
    """Gradients of phi(q), phi(k) and v, added up, from that of the answer of a few keys."""
    for n in range(count):
        value = numba.carray(pointer(v, order[first + n] * vs + at), (V,))
        other, dother = numba.carray(pointer(others, n * M), (M,)), numba.carray(pointer(dothers, n * M), (M,))
        dvalue = numba.carray(pointer(dvalues, n * V), (V,))
        weight, grad = _dot(phi, other, M), _dot(local, value, V) + dnorm
        for m in range(M):
            dphi[m] += grad * other[m]
        for m in range(M):
            dother[m] += grad * phi[m]
        for c in range(V):
            dvalue[c] += weight * local[c]


@_inline
def write(local, out, to, norm, normalize, tiny, V):  # type: ignore[no-untyped-def]
    out = numba.carray(pointer(out, to), (V,))
    scale = 1 / max(norm, tiny) if normalize else norm * 0 + 1
    for c in range(V):
        out[c] = local[c] * scale


@_inline
def nothing(sums, norms, order, first, last, c, C, H, V):  # type: ignore[no-untyped-def]
    """What queries of a class receive that have no key."""
    for t in range(first, last):
        place = (order[t] * C + c) * H
        for n in range(place * V, (place + H) * V):
            sums[n] = 0
        for n in range(place, place + H):
            norms[n] = 0


@_inline
def incoming(sums, norms, grad_sums, grad_norms, to, place, normalize, tiny, local, V):  # type: ignore[no-untyped-def]
    """Gradient of the undivided sums into ``local``; returns that of the norm."""
    grads, sums = numba.carray(pointer(grad_sums, to), (V,)), numba.carray(pointer(sums, to), (V,))
    if normalize:
        norm = norms[place]
        scale = 1 / max(norm, tiny)
        total = _dot(grads, sums, V)
        for c in range(V):
            local[c] = grads[c] * scale
        return -total * scale if norm > tiny else total * 0
    for c in range(V):
        local[c] = grads[c]
    return grad_norms[place]


@_inline
def ask(phi, dphi, local, dnorm, state, turned, dstate, s, t, M, V):  # type: ignore[no-untyped-def]
    """Gradients of phi(q) and of the state from that of an answer."""
    norms = numba.carray(pointer(state, s + M * V), (M,))
    dstate = numba.carray(pointer(dstate, t), (M * V + M,))
    for m in range(M):
        dphi[m] = dnorm * norms[m]
    for c in range(V):
        a = local[c]
        for m in range(M):
            dphi[m] += a * turned[c * M + m]
    for m in range(M):
        a = phi[m]
        for c in range(V):
            dstate[m * V + c] += a * local[c]
        dstate[M * V + m] += a * dnorm


@_inline
def give(phi, dphi, v, at, dstate, turned, t, local, dv, to, M, V):  # type: ignore[no-untyped-def]
    """Gradients of phi(k) and v from that of the state."""
    v, dv = numba.carray(pointer(v, at), (V,)), numba.carray(pointer(dv, to), (V,))
    dstate = numba.carray(pointer(dstate, t), (M * V + M,))
    for c in range(V):
        local[c] = 0
    for m in range(M):
        a = phi[m]
        for c in range(V):
            local[c] += a * dstate[m * V + c]
    for m in range(M):
        dphi[m] = dstate[M * V + m]
    for c in range(V):
        a = v[c]
        for m in range(M):
            dphi[m] += a * turned[c * M + m]
    for c in range(V):
        dv[c] = local[c]


@_scalar
def few(keys, queries, M, V):  # type: ignore[no-untyped-def]
    """Whether all pairs of some keys and queries take much less than a state; a single query takes many keys in turns."""
    return (keys <= FEW_KEYS or queries == 1) and 2 * keys * queries * (M + V) <= (keys + queries) * M * V
