"""The loops of segment linear attention over groups, compiled by Numba for each number of channels and features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from anyorder.extras import require
from anyorder.ops.segment_steps import (
    FEW_KEYS,
    OPTIONS,
    absorb,
    answer,
    ask,
    ask_pairs,
    code_of,
    features,
    features_backward,
    features_of_few,
    fetch,
    few,
    give,
    incoming,
    nothing,
    pairs,
    pointer,
    stack,
    transpose,
    write,
)

numba: Any = require("numba", "fast")


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


@cache
def loops(width: int, width_value: int, num_features: int, kind: str, has_directions: bool) -> Loops:
    """Loops with all widths as constants, so that the compiler unrolls and vectorises them; kept on disk."""
    D, V, M, KIND, TURNED = width, width_value, num_features, code_of(kind), has_directions
    S, T = M * V + M, M * V
    MANY, VALUES = FEW_KEYS * M, FEW_KEYS * V
    compiled = numba.njit(**OPTIONS)

    @compiled
    def forward(q, k, v, qs, ks, vs, wt, w, eps, tiny, korder, kptr, qorder, qptr, H, sums, norms, normalize, piece, g0, g1):  # type: ignore[no-untyped-def]
        C = len(qptr)
        phi = numba.carray(stack(M, k), (M,))
        local = numba.carray(stack(V, k), (V,))
        others = numba.carray(stack(MANY, k), (MANY,))
        state = numba.carray(stack(S, k), (S,))
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
                    nothing(sums, norms, qorder, q0, q1, c, C, H, V)
                    continue
                for h in range(H):
                    if few(k1 - k0, q1 - q0, M, V):
                        for a in range(k0, k1, FEW_KEYS):
                            b = min(a + FEW_KEYS, k1)
                            if h == 0:
                                for t in range(a, b):
                                    fetch(k, korder, t, ks, c * H * D, H * D)
                                    fetch(v, korder, t, vs, c * H * V, H * V)
                            features_of_few(k, ks, (c * H + h) * D, korder, a, b, wt, eps, others, D, M, KIND, TURNED)
                            for t in range(q0, q1):
                                place = (qorder[t] * C + c) * H + h
                                if a == k0:
                                    if h == 0:
                                        fetch(q, qorder, t, qs, c * H * D, H * D)
                                    features(q, qorder[t] * qs + (c * H + h) * D, wt, eps, phi, D, M, KIND, TURNED)
                                    norms[place] = 0
                                    for n in range(V):
                                        local[n] = 0
                                norms[place] += pairs(phi, others, b - a, v, vs, korder, a, (c * H + h) * V, local, M, V)
                                if b == k1:
                                    write(local, sums, place * V, norms[place], normalize, tiny, V)
                        continue
                    for n in range(S):
                        state[n] = 0
                    for t in range(k0, k1):
                        i = korder[t]
                        if h == 0:
                            fetch(k, korder, t, ks, c * H * D, H * D)
                            fetch(v, korder, t, vs, c * H * V, H * V)
                        features(k, i * ks + (c * H + h) * D, wt, eps, phi, D, M, KIND, TURNED)
                        absorb(phi, v, i * vs + (c * H + h) * V, state, 0, M, V)
                    for t in range(q0, q1):
                        place = (qorder[t] * C + c) * H + h
                        if h == 0:
                            fetch(q, qorder, t, qs, c * H * D, H * D)
                        features(q, qorder[t] * qs + (c * H + h) * D, wt, eps, phi, D, M, KIND, TURNED)
                        norm = answer(phi, state, 0, local, M, V)
                        norms[place] = norm
                        write(local, sums, place * V, norm, normalize, tiny, V)

    @compiled
    def backward(  # type: ignore[no-untyped-def]
        q, k, v, qs, ks, vs, wt, w, eps, tiny, korder, kptr, qorder, qptr, H,
        sums, norms, normalize, dsums, dnorms, dq, dk, dv, piece, g0, g1,
    ):  # fmt: skip
        C = len(qptr)
        phi = numba.carray(stack(M, k), (M,))
        dphi = numba.carray(stack(M, k), (M,))
        local = numba.carray(stack(V, k), (V,))
        state = numba.carray(stack(S, k), (S,))
        dstate = numba.carray(stack(S, k), (S,))
        turned = numba.carray(stack(T, k), (T,))
        room = numba.carray(stack(D, k), (D,))
        others = numba.carray(stack(MANY, k), (MANY,))
        dothers = numba.carray(stack(MANY, k), (MANY,))
        dvalues = numba.carray(stack(VALUES, k), (VALUES,))
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
                    if few(k1 - k0, q1 - q0, M, V):
                        for a in range(k0, k1, FEW_KEYS):
                            b = min(a + FEW_KEYS, k1)
                            if h == 0:
                                for t in range(a, b):
                                    fetch(k, korder, t, ks, c * H * D, H * D)
                                    fetch(v, korder, t, vs, c * H * V, H * V)
                            features_of_few(k, ks, (c * H + h) * D, korder, a, b, wt, eps, others, D, M, KIND, TURNED)
                            for n in range((b - a) * M):
                                dothers[n] = 0
                            for n in range((b - a) * V):
                                dvalues[n] = 0
                            for t in range(q0, q1):
                                place = (qorder[t] * C + c) * H + h
                                at = qorder[t] * qs + (c * H + h) * D
                                if a == k0:
                                    if h == 0:
                                        fetch(q, qorder, t, qs, c * H * D, H * D)
                                        fetch(sums, qorder, t, C * H * V, c * H * V, H * V)
                                        fetch(dsums, qorder, t, C * H * V, c * H * V, H * V)
                                    features(q, at, wt, eps, phi, D, M, KIND, TURNED)
                                    dnorm = incoming(
                                        sums, norms, dsums, dnorms, place * V, place, normalize, tiny, local, V
                                    )  # fmt: skip
                                    for n in range(M):
                                        dphi[n] = 0
                                ask_pairs(
                                    phi, dphi, others, dothers, b - a, v, vs, korder, a, (c * H + h) * V, local, dnorm,
                                    dvalues, M, V,
                                )  # fmt: skip
                                if b == k1:
                                    features_backward(q, at, w, eps, phi, dphi, room, dq, place * D, D, M, KIND, TURNED)
                            for n in range(b - a):
                                i = korder[a + n]
                                place = (i * C + c) * H + h
                                other = numba.carray(pointer(others, n * M), (M,))
                                dother = numba.carray(pointer(dothers, n * M), (M,))
                                at = i * ks + (c * H + h) * D
                                features_backward(k, at, w, eps, other, dother, room, dk, place * D, D, M, KIND, TURNED)
                                for m in range(V):
                                    dv[place * V + m] = dvalues[n * V + m]
                        continue
                    for n in range(S):
                        state[n] = 0
                        dstate[n] = 0
                    for t in range(k0, k1):
                        i = korder[t]
                        if h == 0:
                            fetch(k, korder, t, ks, c * H * D, H * D)
                            fetch(v, korder, t, vs, c * H * V, H * V)
                        features(k, i * ks + (c * H + h) * D, wt, eps, phi, D, M, KIND, TURNED)
                        absorb(phi, v, i * vs + (c * H + h) * V, state, 0, M, V)
                    transpose(state, 0, turned, M, V)
                    for t in range(q0, q1):
                        place = (qorder[t] * C + c) * H + h
                        at = qorder[t] * qs + (c * H + h) * D
                        if h == 0:
                            fetch(q, qorder, t, qs, c * H * D, H * D)
                            fetch(sums, qorder, t, C * H * V, c * H * V, H * V)
                            fetch(dsums, qorder, t, C * H * V, c * H * V, H * V)
                        features(q, at, wt, eps, phi, D, M, KIND, TURNED)
                        dnorm = incoming(sums, norms, dsums, dnorms, place * V, place, normalize, tiny, local, V)
                        ask(phi, dphi, local, dnorm, state, turned, dstate, 0, 0, M, V)
                        features_backward(q, at, w, eps, phi, dphi, room, dq, place * D, D, M, KIND, TURNED)
                    transpose(dstate, 0, turned, M, V)
                    for t in range(k0, k1):
                        i = korder[t]
                        place = (i * C + c) * H + h
                        at = i * ks + (c * H + h) * D
                        features(k, at, wt, eps, phi, D, M, KIND, TURNED)
                        give(phi, dphi, v, i * vs + (c * H + h) * V, dstate, turned, 0, local, dv, place * V, M, V)
                        features_backward(k, at, w, eps, phi, dphi, room, dk, place * D, D, M, KIND, TURNED)

    @compiled
    def states(q, k, v, qs, ks, vs, wt, w, eps, tiny, korder, kptr, qorder, qptr, H, pieces, partial, n0, n1):  # type: ignore[no-untyped-def]
        C = len(qptr)
        phi = numba.carray(stack(M, k), (M,))
        for n in range(n0, n1):
            state = partial[n]
            for t in range(pieces[n, 2], pieces[n, 3]):
                i = korder[t]
                for c in range(C):
                    for h in range(H):
                        features(k, i * ks + (c * H + h) * D, wt, eps, phi, D, M, KIND, TURNED)
                        absorb(phi, v, i * vs + (c * H + h) * V, state, (c * H + h) * S, M, V)

    @compiled
    def apply(  # type: ignore[no-untyped-def]
        q, k, v, qs, ks, vs, wt, w, eps, tiny, korder, kptr, qorder, qptr, H, whole, sums, norms, normalize, pieces, n0, n1
    ):
        C = len(qptr)
        phi = numba.carray(stack(M, k), (M,))
        local = numba.carray(stack(V, k), (V,))
        for n in range(n0, n1):
            state, c = whole[pieces[n, 0]], pieces[n, 1]
            for t in range(pieces[n, 2], pieces[n, 3]):
                for h in range(H):
                    place = (qorder[t] * C + c) * H + h
                    features(q, qorder[t] * qs + (c * H + h) * D, wt, eps, phi, D, M, KIND, TURNED)
                    norm = answer(phi, state, (c * H + h) * S, local, M, V)
                    norms[place] = norm
                    write(local, sums, place * V, norm, normalize, tiny, V)

    @compiled
    def query_backward(  # type: ignore[no-untyped-def]
        q, k, v, qs, ks, vs, wt, w, eps, tiny, korder, kptr, qorder, qptr, H, whole,
        sums, norms, normalize, dsums, dnorms, dq, dk, dv, pieces, partial, n0, n1,
    ):  # fmt: skip
        C = len(qptr)
        phi = numba.carray(stack(M, k), (M,))
        dphi = numba.carray(stack(M, k), (M,))
        local = numba.carray(stack(V, k), (V,))
        turned = numba.carray(stack(T, k), (T,))
        room = numba.carray(stack(D, k), (D,))
        for n in range(n0, n1):
            state, dstate, c = whole[pieces[n, 0]], partial[n], pieces[n, 1]
            for h in range(H):
                s = (c * H + h) * S
                transpose(state, s, turned, M, V)
                for t in range(pieces[n, 2], pieces[n, 3]):
                    place = (qorder[t] * C + c) * H + h
                    at = qorder[t] * qs + (c * H + h) * D
                    features(q, at, wt, eps, phi, D, M, KIND, TURNED)
                    dnorm = incoming(sums, norms, dsums, dnorms, place * V, place, normalize, tiny, local, V)
                    ask(phi, dphi, local, dnorm, state, turned, dstate, s, s, M, V)
                    features_backward(q, at, w, eps, phi, dphi, room, dq, place * D, D, M, KIND, TURNED)

    @compiled
    def key_backward(q, k, v, qs, ks, vs, wt, w, eps, tiny, korder, kptr, qorder, qptr, H, dstates, dk, dv, pieces, n0, n1):  # type: ignore[no-untyped-def]
        C = len(qptr)
        phi = numba.carray(stack(M, k), (M,))
        dphi = numba.carray(stack(M, k), (M,))
        local = numba.carray(stack(V, k), (V,))
        turned = numba.carray(stack(T, k), (T,))
        room = numba.carray(stack(D, k), (D,))
        for n in range(n0, n1):
            dstate = dstates[pieces[n, 0]]
            for c in range(C):
                for h in range(H):
                    transpose(dstate, (c * H + h) * S, turned, M, V)
                    for t in range(pieces[n, 2], pieces[n, 3]):
                        i = korder[t]
                        place = (i * C + c) * H + h
                        at = i * ks + (c * H + h) * D
                        features(k, at, wt, eps, phi, D, M, KIND, TURNED)
                        s = (c * H + h) * S
                        give(phi, dphi, v, i * vs + (c * H + h) * V, dstate, turned, s, local, dv, place * V, M, V)
                        features_backward(k, at, w, eps, phi, dphi, room, dk, place * D, D, M, KIND, TURNED)

    return Loops(forward, backward, states, apply, query_backward, key_backward, S)
