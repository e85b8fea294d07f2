"""The inner loops of segment linear attention, compiled by Numba for each number of channels and features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from anyorder.extras import require

numba: Any = require("numba", "fast")
extending: Any = require("numba.extending", "fast")
cgutils: Any = require("numba.core.cgutils", "fast")
numba.config.SLP_VECTORIZE = 1  # heads are narrow: their loops are unrolled, and become vectors only so
_OPTIONS = {"nogil": True, "cache": True, "fastmath": {"contract"}, "error_model": "numpy"}
FEW_KEYS = 16  # of a group that may do without a state
_inline = numba.njit(inline="always", **_OPTIONS)
# Every inner loop adds a multiple of one row to another, along memory. Leave to reorder sums is given to dot products alone:
# elsewhere the compiler would use it to sum across rows instead, which is many times slower.
_reorder = numba.njit(nogil=True, cache=True, fastmath={"contract", "reassoc"}, error_model="numpy")


@extending.intrinsic(prefer_literal=True)
def _stack(context, size, like):  # type: ignore[no-untyped-def]
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
def _pointer(context, array, offset):  # type: ignore[no-untyped-def]
    """A pointer to an element, so that what follows is indexed from 0 without checks for negative indices."""

    def generate(target, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = cgutils.create_struct_proxy(signature.args[0])(target, builder, value=arguments[0]).data
        return builder.gep(data, [arguments[1]])

    return numba.types.CPointer(array.dtype)(array, numba.types.intp), generate


@_reorder
def _dot(a, b, n):  # type: ignore[no-untyped-def]
    total = a[0] * b[0]
    for i in range(1, n):
        total += a[i] * b[i]
    return total


@_inline
def _transpose(state, s, turned, M, V):  # type: ignore[no-untyped-def]
    """The (feature, channel) part of a state as (channel, feature)."""
    state = numba.carray(_pointer(state, s), (M * V + M,))
    for m in range(M):
        for c in range(V):
            turned[c * M + m] = state[m * V + c]


@_inline
def _features(x, at, wt, eps, phi, D, M, KIND):  # type: ignore[no-untyped-def]
    """phi(x) of one head; KIND 0: as it is, 1: relu(w.x) + eps, 2: elu(x) + 1."""
    x = numba.carray(_pointer(x, at), (D,))
    if KIND == 1:
        for m in range(M):
            phi[m] = 0
        for d in range(D):
            a = x[d]
            for m in range(M):
                phi[m] += a * wt[d * M + m]
        for m in range(M):
            phi[m] = max(phi[m], 0) + eps
    elif KIND == 2:
        for m in range(M):
            a = x[m]
            phi[m] = a + 1 if a > 0 else np.exp(a)
    else:
        for m in range(M):
            phi[m] = x[m]


@_inline
def _features_of_few(x, stride, at, order, first, last, wt, eps, phis, D, M, KIND):  # type: ignore[no-untyped-def]
    """phi(x) of one head for a few rows, one after the other."""
    for n in range(last - first):
        phi = numba.carray(_pointer(phis, n * M), (M,))
        _features(x, order[first + n] * stride + at, wt, eps, phi, D, M, KIND)


@_inline
def _features_backward(x, at, w, eps, phi, dphi, local, dx, to, D, M, KIND):  # type: ignore[no-untyped-def]
    """Gradient of x from that of phi(x)."""
    x, dx = numba.carray(_pointer(x, at), (D,)), numba.carray(_pointer(dx, to), (D,))
    if KIND == 1:
        for m in range(M):
            dphi[m] = dphi[m] if phi[m] > eps else 0
        for d in range(D):
            local[d] = 0
        for m in range(M):
            a = dphi[m]
            for d in range(D):
                local[d] += a * w[m * D + d]
        for d in range(D):
            dx[d] = local[d]
    elif KIND == 2:
        for m in range(M):
            dx[m] = dphi[m] * (1 if x[m] > 0 else phi[m])
    else:
        for m in range(M):
            dx[m] = dphi[m]


@_inline
def _absorb(phi, v, at, state, s, M, V):  # type: ignore[no-untyped-def]
    """Add phi(k) v^T and phi(k) to a state, laid out as (feature, channel) and then (feature)."""
    v, state = numba.carray(_pointer(v, at), (V,)), numba.carray(_pointer(state, s), (M * V + M,))
    for m in range(M):
        a = phi[m]
        for c in range(V):
            state[m * V + c] += a * v[c]
        state[M * V + m] += a


@_inline
def _answer(phi, state, s, local, M, V):  # type: ignore[no-untyped-def]
    """phi(q)^T state into ``local``; returns the norm."""
    state = numba.carray(_pointer(state, s), (M * V + M,))
    norm = _dot(phi, numba.carray(_pointer(state, M * V), (M,)), M)
    for c in range(V):
        local[c] = 0
    for m in range(M):
        a = phi[m]
        for c in range(V):
            local[c] += a * state[m * V + c]
    return norm


@_inline
def _pairs(phi, others, count, v, vs, order, first, at, local, M, V):  # type: ignore[no-untyped-def]
    """What a few keys answer, without a state: adds phi(q).phi(k) v to ``local``; returns the sum of phi(q).phi(k)."""
    norm = phi[0] * 0
    for n in range(count):
        value = numba.carray(_pointer(v, order[first + n] * vs + at), (V,))
        weight = _dot(phi, numba.carray(_pointer(others, n * M), (M,)), M)
        norm += weight
        for c in range(V):
            local[c] += weight * value[c]
    return norm


@_inline
def _ask_pairs(phi, dphi, others, dothers, count, v, vs, order, first, at, local, dnorm, dvalues, M, V):  # type: ignore[no-untyped-def]
    """Gradients of phi(q), phi(k) and v, added up, from that of the answer of a few keys."""
    for n in range(count):
        value = numba.carray(_pointer(v, order[first + n] * vs + at), (V,))
        other, dother = numba.carray(_pointer(others, n * M), (M,)), numba.carray(_pointer(dothers, n * M), (M,))
        dvalue = numba.carray(_pointer(dvalues, n * V), (V,))
        weight, grad = _dot(phi, other, M), _dot(local, value, V) + dnorm
        for m in range(M):
            dphi[m] += grad * other[m]
        for m in range(M):
            dother[m] += grad * phi[m]
        for c in range(V):
            dvalue[c] += weight * local[c]


@_inline
def _write(local, out, to, norm, normalize, tiny, V):  # type: ignore[no-untyped-def]
    out = numba.carray(_pointer(out, to), (V,))
    scale = 1 / max(norm, tiny) if normalize else norm * 0 + 1
    for c in range(V):
        out[c] = local[c] * scale


@_inline
def _nothing(sums, norms, order, first, last, c, C, H, V):  # type: ignore[no-untyped-def]
    """What queries of a class receive that have no key."""
    for t in range(first, last):
        place = (order[t] * C + c) * H
        for n in range(place * V, (place + H) * V):
            sums[n] = 0
        for n in range(place, place + H):
            norms[n] = 0


@_inline
def _incoming(sums, norms, grad_sums, grad_norms, to, place, normalize, tiny, local, V):  # type: ignore[no-untyped-def]
    """Gradient of the undivided sums into ``local``; returns that of the norm."""
    grads, sums = numba.carray(_pointer(grad_sums, to), (V,)), numba.carray(_pointer(sums, to), (V,))
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
def _ask(phi, dphi, local, dnorm, state, turned, dstate, s, t, M, V):  # type: ignore[no-untyped-def]
    """Gradients of phi(q) and of the state from that of an answer."""
    norms = numba.carray(_pointer(state, s + M * V), (M,))
    dstate = numba.carray(_pointer(dstate, t), (M * V + M,))
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
def _give(phi, dphi, v, at, dstate, turned, t, local, dv, to, M, V):  # type: ignore[no-untyped-def]
    """Gradients of phi(k) and v from that of the state."""
    v, dv = numba.carray(_pointer(v, at), (V,)), numba.carray(_pointer(dv, to), (V,))
    dstate = numba.carray(_pointer(dstate, t), (M * V + M,))
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


@_inline
def _few(keys, queries, M, V):  # type: ignore[no-untyped-def]
    """Whether all pairs of some keys and queries take much less than a state; a single query takes many keys in turns."""
    return (keys <= FEW_KEYS or queries == 1) and 2 * keys * queries * (M + V) <= (keys + queries) * M * V


@dataclass(frozen=True)
class Loops:
    """Compiled loops for one set of widths."""

    forward: Callable[..., None]
    backward: Callable[..., None]
    states: Callable[..., None]
    apply: Callable[..., None]
    query_backward: Callable[..., None]
    key_backward: Callable[..., None]
    state_size: int

    @staticmethod
    def long_groups(key_pointer: Any, query_pointer: Any, piece: int) -> Any:
        """Groups that are cut into pieces."""
        keys, queries = np.diff(key_pointer), np.diff(query_pointer, axis=1)
        return np.flatnonzero((keys > piece) | (queries > piece).any(0))

    @staticmethod
    def pieces(long: Any, pointer: Any, width: int, piece: int) -> Any:
        """Rows (place among the long groups, class or -1, first, last) that cut their keys (width 0) or queries."""
        found = []
        for place, group in enumerate(long):
            for c in range(len(pointer) // width if width else 1):
                first, last = pointer[c * width + group], pointer[c * width + group + 1]
                found += [(place, c, start, min(start + piece, last)) for start in range(first, last, piece)]
        return np.array(found, np.int64).reshape(-1, 4)


KINDS = {"none": 0, "relu": 1, "elu": 2}


@cache
def loops(width: int, width_value: int, features: int, kind: str) -> Loops:
    """Loops with all widths as constants, so that the compiler unrolls and vectorises them; kept on disk."""
    D, V, M, KIND = width, width_value, features, KINDS[kind]
    S, T = M * V + M, M * V
    MANY, VALUES = FEW_KEYS * M, FEW_KEYS * V
    compiled = numba.njit(**_OPTIONS)

    @compiled
    def forward(q, k, v, qs, ks, vs, wt, w, eps, tiny, korder, kptr, qorder, qptr, H, sums, norms, normalize, piece, g0, g1):  # type: ignore[no-untyped-def]
        C = len(qptr)
        phi = numba.carray(_stack(M, k), (M,))
        local = numba.carray(_stack(V, k), (V,))
        others = numba.carray(_stack(MANY, k), (MANY,))
        state = numba.carray(_stack(S, k), (S,))
        for g in range(g0, g1):
            k0, k1 = kptr[g], kptr[g + 1]
            longest = k1 - k0
            for c in range(C):
                longest = max(longest, qptr[c, g + 1] - qptr[c, g])
            if longest > piece:
                continue
            for c in range(C):
                q0, q1 = qptr[c, g], qptr[c, g + 1]
                if q0 == q1:
                    continue
                if k0 == k1:
                    _nothing(sums, norms, qorder, q0, q1, c, C, H, V)
                    continue
                for h in range(H):
                    if _few(k1 - k0, q1 - q0, M, V):
                        for a in range(k0, k1, FEW_KEYS):
                            b = min(a + FEW_KEYS, k1)
                            _features_of_few(k, ks, (c * H + h) * D, korder, a, b, wt, eps, others, D, M, KIND)
                            for t in range(q0, q1):
                                place = (qorder[t] * C + c) * H + h
                                if a == k0:
                                    _features(q, qorder[t] * qs + (c * H + h) * D, wt, eps, phi, D, M, KIND)
                                    norms[place] = 0
                                    for n in range(V):
                                        local[n] = 0
                                norms[place] += _pairs(phi, others, b - a, v, vs, korder, a, (c * H + h) * V, local, M, V)
                                if b == k1:
                                    _write(local, sums, place * V, norms[place], normalize, tiny, V)
                        continue
                    for n in range(S):
                        state[n] = 0
                    for t in range(k0, k1):
                        i = korder[t]
                        _features(k, i * ks + (c * H + h) * D, wt, eps, phi, D, M, KIND)
                        _absorb(phi, v, i * vs + (c * H + h) * V, state, 0, M, V)
                    for t in range(q0, q1):
                        place = (qorder[t] * C + c) * H + h
                        _features(q, qorder[t] * qs + (c * H + h) * D, wt, eps, phi, D, M, KIND)
                        norm = _answer(phi, state, 0, local, M, V)
                        norms[place] = norm
                        _write(local, sums, place * V, norm, normalize, tiny, V)

    @compiled
    def backward(  # type: ignore[no-untyped-def]
        q, k, v, qs, ks, vs, wt, w, eps, tiny, korder, kptr, qorder, qptr, H,
        sums, norms, normalize, dsums, dnorms, dq, dk, dv, piece, g0, g1,
    ):  # fmt: skip
        C = len(qptr)
        phi = numba.carray(_stack(M, k), (M,))
        dphi = numba.carray(_stack(M, k), (M,))
        local = numba.carray(_stack(V, k), (V,))
        state = numba.carray(_stack(S, k), (S,))
        dstate = numba.carray(_stack(S, k), (S,))
        turned = numba.carray(_stack(T, k), (T,))
        room = numba.carray(_stack(D, k), (D,))
        others = numba.carray(_stack(MANY, k), (MANY,))
        dothers = numba.carray(_stack(MANY, k), (MANY,))
        dvalues = numba.carray(_stack(VALUES, k), (VALUES,))
        for g in range(g0, g1):
            k0, k1 = kptr[g], kptr[g + 1]
            longest = k1 - k0
            for c in range(C):
                longest = max(longest, qptr[c, g + 1] - qptr[c, g])
            if longest > piece or k1 == k0:
                continue
            for c in range(C):
                q0, q1 = qptr[c, g], qptr[c, g + 1]
                if q0 == q1:
                    continue
                for h in range(H):
                    if _few(k1 - k0, q1 - q0, M, V):
                        for a in range(k0, k1, FEW_KEYS):
                            b = min(a + FEW_KEYS, k1)
                            _features_of_few(k, ks, (c * H + h) * D, korder, a, b, wt, eps, others, D, M, KIND)
                            for n in range((b - a) * M):
                                dothers[n] = 0
                            for n in range((b - a) * V):
                                dvalues[n] = 0
                            for t in range(q0, q1):
                                place = (qorder[t] * C + c) * H + h
                                at = qorder[t] * qs + (c * H + h) * D
                                if a == k0:
                                    _features(q, at, wt, eps, phi, D, M, KIND)
                                    dnorm = _incoming(
                                        sums, norms, dsums, dnorms, place * V, place, normalize, tiny, local, V
                                    )  # fmt: skip
                                    for n in range(M):
                                        dphi[n] = 0
                                _ask_pairs(
                                    phi, dphi, others, dothers, b - a, v, vs, korder, a, (c * H + h) * V, local, dnorm,
                                    dvalues, M, V,
                                )  # fmt: skip
                                if b == k1:
                                    _features_backward(q, at, w, eps, phi, dphi, room, dq, place * D, D, M, KIND)
                            for n in range(b - a):
                                i = korder[a + n]
                                place = (i * C + c) * H + h
                                other = numba.carray(_pointer(others, n * M), (M,))
                                dother = numba.carray(_pointer(dothers, n * M), (M,))
                                at = i * ks + (c * H + h) * D
                                _features_backward(k, at, w, eps, other, dother, room, dk, place * D, D, M, KIND)
                                for m in range(V):
                                    dv[place * V + m] = dvalues[n * V + m]
                        continue
                    for n in range(S):
                        state[n] = 0
                        dstate[n] = 0
                    for t in range(k0, k1):
                        i = korder[t]
                        _features(k, i * ks + (c * H + h) * D, wt, eps, phi, D, M, KIND)
                        _absorb(phi, v, i * vs + (c * H + h) * V, state, 0, M, V)
                    _transpose(state, 0, turned, M, V)
                    for t in range(q0, q1):
                        place = (qorder[t] * C + c) * H + h
                        at = qorder[t] * qs + (c * H + h) * D
                        _features(q, at, wt, eps, phi, D, M, KIND)
                        dnorm = _incoming(sums, norms, dsums, dnorms, place * V, place, normalize, tiny, local, V)
                        _ask(phi, dphi, local, dnorm, state, turned, dstate, 0, 0, M, V)
                        _features_backward(q, at, w, eps, phi, dphi, room, dq, place * D, D, M, KIND)
                    _transpose(dstate, 0, turned, M, V)
                    for t in range(k0, k1):
                        i = korder[t]
                        place = (i * C + c) * H + h
                        at = i * ks + (c * H + h) * D
                        _features(k, at, wt, eps, phi, D, M, KIND)
                        _give(phi, dphi, v, i * vs + (c * H + h) * V, dstate, turned, 0, local, dv, place * V, M, V)
                        _features_backward(k, at, w, eps, phi, dphi, room, dk, place * D, D, M, KIND)

    @compiled
    def states(q, k, v, qs, ks, vs, wt, w, eps, tiny, korder, kptr, qorder, qptr, H, pieces, partial, n0, n1):  # type: ignore[no-untyped-def]
        C = len(qptr)
        phi = numba.carray(_stack(M, k), (M,))
        for n in range(n0, n1):
            state = partial[n]
            for t in range(pieces[n, 2], pieces[n, 3]):
                i = korder[t]
                for c in range(C):
                    for h in range(H):
                        _features(k, i * ks + (c * H + h) * D, wt, eps, phi, D, M, KIND)
                        _absorb(phi, v, i * vs + (c * H + h) * V, state, (c * H + h) * S, M, V)

    @compiled
    def apply(  # type: ignore[no-untyped-def]
        q, k, v, qs, ks, vs, wt, w, eps, tiny, korder, kptr, qorder, qptr, H, whole, sums, norms, normalize, pieces, n0, n1
    ):
        C = len(qptr)
        phi = numba.carray(_stack(M, k), (M,))
        local = numba.carray(_stack(V, k), (V,))
        for n in range(n0, n1):
            state, c = whole[pieces[n, 0]], pieces[n, 1]
            for t in range(pieces[n, 2], pieces[n, 3]):
                for h in range(H):
                    place = (qorder[t] * C + c) * H + h
                    _features(q, qorder[t] * qs + (c * H + h) * D, wt, eps, phi, D, M, KIND)
                    norm = _answer(phi, state, (c * H + h) * S, local, M, V)
                    norms[place] = norm
                    _write(local, sums, place * V, norm, normalize, tiny, V)

    @compiled
    def query_backward(  # type: ignore[no-untyped-def]
        q, k, v, qs, ks, vs, wt, w, eps, tiny, korder, kptr, qorder, qptr, H, whole,
        sums, norms, normalize, dsums, dnorms, dq, dk, dv, pieces, partial, n0, n1,
    ):  # fmt: skip
        C = len(qptr)
        phi = numba.carray(_stack(M, k), (M,))
        dphi = numba.carray(_stack(M, k), (M,))
        local = numba.carray(_stack(V, k), (V,))
        turned = numba.carray(_stack(T, k), (T,))
        room = numba.carray(_stack(D, k), (D,))
        for n in range(n0, n1):
            state, dstate, c = whole[pieces[n, 0]], partial[n], pieces[n, 1]
            for h in range(H):
                s = (c * H + h) * S
                _transpose(state, s, turned, M, V)
                for t in range(pieces[n, 2], pieces[n, 3]):
                    place = (qorder[t] * C + c) * H + h
                    at = qorder[t] * qs + (c * H + h) * D
                    _features(q, at, wt, eps, phi, D, M, KIND)
                    dnorm = _incoming(sums, norms, dsums, dnorms, place * V, place, normalize, tiny, local, V)
                    _ask(phi, dphi, local, dnorm, state, turned, dstate, s, s, M, V)
                    _features_backward(q, at, w, eps, phi, dphi, room, dq, place * D, D, M, KIND)

    @compiled
    def key_backward(q, k, v, qs, ks, vs, wt, w, eps, tiny, korder, kptr, qorder, qptr, H, dstates, dk, dv, pieces, n0, n1):  # type: ignore[no-untyped-def]
        C = len(qptr)
        phi = numba.carray(_stack(M, k), (M,))
        dphi = numba.carray(_stack(M, k), (M,))
        local = numba.carray(_stack(V, k), (V,))
        turned = numba.carray(_stack(T, k), (T,))
        room = numba.carray(_stack(D, k), (D,))
        for n in range(n0, n1):
            dstate = dstates[pieces[n, 0]]
            for c in range(C):
                for h in range(H):
                    _transpose(dstate, (c * H + h) * S, turned, M, V)
                    for t in range(pieces[n, 2], pieces[n, 3]):
                        i = korder[t]
                        place = (i * C + c) * H + h
                        at = i * ks + (c * H + h) * D
                        _features(k, at, wt, eps, phi, D, M, KIND)
                        s = (c * H + h) * S
                        _give(phi, dphi, v, i * vs + (c * H + h) * V, dstate, turned, s, local, dv, place * V, M, V)
                        _features_backward(k, at, w, eps, phi, dphi, room, dk, place * D, D, M, KIND)

    return Loops(forward, backward, states, apply, query_backward, key_backward, S)
