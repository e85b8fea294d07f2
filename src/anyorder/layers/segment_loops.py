"""The inner loops of segment linear attention, compiled by Numba for each number of channels and features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from anyorder.extras import require

numba: Any = require("numba", "fast")
_OPTIONS = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc", "nsz", "arcp"}, "error_model": "numpy"}
_inline = numba.njit(inline="always", **_OPTIONS)


@_inline
def _features(x, at, wt, eps, phi, D, M, KIND):  # type: ignore[no-untyped-def]
    """phi(x) of one head; KIND 0: as it is, 1: relu(w.x) + eps, 2: elu(x) + 1."""
    if KIND == 1:
        for m in range(M):
            phi[m] = 0
        for d in range(D):
            a = x[at + d]
            for m in range(M):
                phi[m] += a * wt[d * M + m]
        for m in range(M):
            phi[m] = max(phi[m], 0) + eps
    elif KIND == 2:
        for m in range(M):
            a = x[at + m]
            phi[m] = a + 1 if a > 0 else np.exp(a)
    else:
        for m in range(M):
            phi[m] = x[at + m]


@_inline
def _features_backward(x, at, wt, eps, phi, dphi, dx, to, D, M, KIND):  # type: ignore[no-untyped-def]
    """Gradient of x from that of phi(x)."""
    if KIND == 1:
        for m in range(M):
            dphi[m] = dphi[m] if phi[m] > eps else 0
        for d in range(D):
            total = dphi[0] * wt[d * M]
            for m in range(1, M):
                total += dphi[m] * wt[d * M + m]
            dx[to + d] = total
    elif KIND == 2:
        for m in range(M):
            dx[to + m] = dphi[m] * (1 if x[at + m] > 0 else phi[m])
    else:
        for m in range(M):
            dx[to + m] = dphi[m]


@_inline
def _absorb(phi, v, at, state, s, M, V):  # type: ignore[no-untyped-def]
    """Add phi(k) v^T and phi(k) to a state, laid out as (feature, channel) and then (feature)."""
    for m in range(M):
        a = phi[m]
        for c in range(V):
            state[s + m * V + c] += a * v[at + c]
        state[s + M * V + m] += a


@_inline
def _answer(phi, state, s, out, to, M, V):  # type: ignore[no-untyped-def]
    """phi(q)^T state; returns the norm."""
    norm = phi[0] * state[s + M * V]
    for m in range(1, M):
        norm += phi[m] * state[s + M * V + m]
    for c in range(V):
        out[to + c] = 0
    for m in range(M):
        a = phi[m]
        for c in range(V):
            out[to + c] += a * state[s + m * V + c]
    return norm


@_inline
def _divide(out, to, norm, normalize, tiny, V):  # type: ignore[no-untyped-def]
    if normalize:
        scale = 1 / max(norm, tiny)
        for c in range(V):
            out[to + c] *= scale


@_inline
def _incoming(sums, norms, grad_sums, grad_norms, to, place, normalize, tiny, local, V):  # type: ignore[no-untyped-def]
    """Gradient of the undivided sums into ``local[:V]``; returns that of the norm."""
    if normalize:
        norm = norms[place]
        scale = 1 / max(norm, tiny)
        total = grad_sums[to] * sums[to]
        for c in range(1, V):
            total += grad_sums[to + c] * sums[to + c]
        for c in range(V):
            local[c] = grad_sums[to + c] * scale
        return -total * scale if norm > tiny else total * 0
    for c in range(V):
        local[c] = grad_sums[to + c]
    return grad_norms[place]


@_inline
def _ask(phi, dphi, local, dnorm, state, dstate, s, t, M, V):  # type: ignore[no-untyped-def]
    """Gradients of phi(q) and of the state from that of an answer."""
    for m in range(M):
        total = dnorm * state[s + M * V + m]
        for c in range(V):
            total += local[c] * state[s + m * V + c]
        dphi[m] = total
    for m in range(M):
        a = phi[m]
        for c in range(V):
            dstate[t + m * V + c] += a * local[c]
        dstate[t + M * V + m] += a * dnorm


@_inline
def _give(phi, dphi, v, at, dstate, t, dv, to, M, V):  # type: ignore[no-untyped-def]
    """Gradients of phi(k) and v from that of the state."""
    for c in range(V):
        dv[to + c] = 0
    for m in range(M):
        a = phi[m]
        total = dstate[t + M * V + m]
        for c in range(V):
            dv[to + c] += a * dstate[t + m * V + c]
            total += v[at + c] * dstate[t + m * V + c]
        dphi[m] = total


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
    S = M * V + M
    compiled = numba.njit(**_OPTIONS)

    @compiled
    def forward(q, k, v, qs, ks, vs, wt, eps, tiny, korder, kptr, qorder, qptr, H, sums, norms, normalize, piece, g0, g1):  # type: ignore[no-untyped-def]
        C, phi, state = len(qptr), np.empty(M, k.dtype), np.empty(S, k.dtype)
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
                    for n in range(S):
                        state[n] = 0
                    for t in range(k0, k1):
                        i = korder[t]
                        _features(k, i * ks + (c * H + h) * D, wt, eps, phi, D, M, KIND)
                        _absorb(phi, v, i * vs + (c * H + h) * V, state, 0, M, V)
                    for t in range(q0, q1):
                        place = (qorder[t] * C + c) * H + h
                        _features(q, qorder[t] * qs + (c * H + h) * D, wt, eps, phi, D, M, KIND)
                        norm = _answer(phi, state, 0, sums, place * V, M, V)
                        norms[place] = norm
                        _divide(sums, place * V, norm, normalize, tiny, V)

    @compiled
    def backward(  # type: ignore[no-untyped-def]
        q, k, v, qs, ks, vs, wt, eps, tiny, korder, kptr, qorder, qptr, H, sums, norms, normalize, dsums, dnorms, dq, dk, dv, piece, g0, g1
    ):
        C, phi, dphi, local = len(qptr), np.empty(M, k.dtype), np.empty(M, k.dtype), np.empty(V, k.dtype)
        state, dstate = np.empty(S, k.dtype), np.empty(S, k.dtype)
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
                    for n in range(S):
                        state[n] = 0
                        dstate[n] = 0
                    for t in range(k0, k1):
                        i = korder[t]
                        _features(k, i * ks + (c * H + h) * D, wt, eps, phi, D, M, KIND)
                        _absorb(phi, v, i * vs + (c * H + h) * V, state, 0, M, V)
                    for t in range(q0, q1):
                        place = (qorder[t] * C + c) * H + h
                        at = qorder[t] * qs + (c * H + h) * D
                        _features(q, at, wt, eps, phi, D, M, KIND)
                        dnorm = _incoming(sums, norms, dsums, dnorms, place * V, place, normalize, tiny, local, V)
                        _ask(phi, dphi, local, dnorm, state, dstate, 0, 0, M, V)
                        _features_backward(q, at, wt, eps, phi, dphi, dq, place * D, D, M, KIND)
                    for t in range(k0, k1):
                        i = korder[t]
                        place = (i * C + c) * H + h
                        at = i * ks + (c * H + h) * D
                        _features(k, at, wt, eps, phi, D, M, KIND)
                        _give(phi, dphi, v, i * vs + (c * H + h) * V, dstate, 0, dv, place * V, M, V)
                        _features_backward(k, at, wt, eps, phi, dphi, dk, place * D, D, M, KIND)

    @compiled
    def states(q, k, v, qs, ks, vs, wt, eps, tiny, korder, kptr, qorder, qptr, H, pieces, partial, n0, n1):  # type: ignore[no-untyped-def]
        C, phi = len(qptr), np.empty(M, k.dtype)
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
        q, k, v, qs, ks, vs, wt, eps, tiny, korder, kptr, qorder, qptr, H, whole, sums, norms, normalize, pieces, n0, n1
    ):
        C, phi = len(qptr), np.empty(M, k.dtype)
        for n in range(n0, n1):
            state, c = whole[pieces[n, 0]], pieces[n, 1]
            for t in range(pieces[n, 2], pieces[n, 3]):
                for h in range(H):
                    place = (qorder[t] * C + c) * H + h
                    _features(q, qorder[t] * qs + (c * H + h) * D, wt, eps, phi, D, M, KIND)
                    norm = _answer(phi, state, (c * H + h) * S, sums, place * V, M, V)
                    norms[place] = norm
                    _divide(sums, place * V, norm, normalize, tiny, V)

    @compiled
    def query_backward(  # type: ignore[no-untyped-def]
        q, k, v, qs, ks, vs, wt, eps, tiny, korder, kptr, qorder, qptr, H, whole,
        sums, norms, normalize, dsums, dnorms, dq, dk, dv, pieces, partial, n0, n1,
    ):  # fmt: skip
        C, phi, dphi, local = len(qptr), np.empty(M, k.dtype), np.empty(M, k.dtype), np.empty(V, k.dtype)
        for n in range(n0, n1):
            state, dstate, c = whole[pieces[n, 0]], partial[n], pieces[n, 1]
            for t in range(pieces[n, 2], pieces[n, 3]):
                for h in range(H):
                    place = (qorder[t] * C + c) * H + h
                    at = qorder[t] * qs + (c * H + h) * D
                    s = (c * H + h) * S
                    _features(q, at, wt, eps, phi, D, M, KIND)
                    dnorm = _incoming(sums, norms, dsums, dnorms, place * V, place, normalize, tiny, local, V)
                    _ask(phi, dphi, local, dnorm, state, dstate, s, s, M, V)
                    _features_backward(q, at, wt, eps, phi, dphi, dq, place * D, D, M, KIND)

    @compiled
    def key_backward(q, k, v, qs, ks, vs, wt, eps, tiny, korder, kptr, qorder, qptr, H, dstates, dk, dv, pieces, n0, n1):  # type: ignore[no-untyped-def]
        C, phi, dphi = len(qptr), np.empty(M, k.dtype), np.empty(M, k.dtype)
        for n in range(n0, n1):
            dstate = dstates[pieces[n, 0]]
            for t in range(pieces[n, 2], pieces[n, 3]):
                i = korder[t]
                for c in range(C):
                    for h in range(H):
                        place = (i * C + c) * H + h
                        at = i * ks + (c * H + h) * D
                        _features(k, at, wt, eps, phi, D, M, KIND)
                        _give(phi, dphi, v, i * vs + (c * H + h) * V, dstate, (c * H + h) * S, dv, place * V, M, V)
                        _features_backward(k, at, wt, eps, phi, dphi, dk, place * D, D, M, KIND)

    return Loops(forward, backward, states, apply, query_backward, key_backward, S)
