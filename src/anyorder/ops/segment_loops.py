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
    absorb_turned,
    answer,
    ask,
    ask_pairs,
    clear,
    code_of,
    features,
    features_backward,
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
from anyorder.ops.vectors import add_scaled, scaled

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
    def pieces(long: Any, pointer: Any, width: int, piece: int) -> Any:
        """Rows (place among the long groups, class or -1, first, last) that cut their keys (width 0) or queries."""
        found = []
        for place, group in enumerate(long):
            for c in range(len(pointer) // width if width else 1):
                first, last = pointer[c * width + group], pointer[c * width + group + 1]
                found += [(place, c, start, min(start + piece, last)) for start in range(first, last, piece)]
        return np.array(found, np.int64).reshape(-1, 4)


@cache
def loops(width: int, width_value: int, num_features: int, kind: str, has_directions: bool, added: bool) -> Loops:
    """Loops with all widths as constants; kept on disk. Results are written, or added with a sign to what is there."""
    D, V, M, KIND, TURNED, ADDED = width, width_value, num_features, code_of(kind), has_directions, added
    S = M * V + M
    MANY, VALUES = FEW_KEYS * M, FEW_KEYS * V
    compiled = numba.njit(**OPTIONS)

    @compiled
    def forward(  # type: ignore[no-untyped-def]
        q, k, v, qs, ks, vs, wt, w, eps, tiny, one, sign, korder, kptr, qorder, qptr, H,
        sums, norms, normalize, piece, g0, g1,
    ):  # fmt: skip
        C = len(qptr)
        phi, local, state, others = stack(M, wt), stack(V, wt), stack(S, wt), stack(MANY, wt)
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
                    if not ADDED:
                        nothing(sums, norms, qorder, q0, q1, c, C, H, V)
                    continue
                for h in range(H):
                    atq, atk, atv = (c * H + h) * D, (c * H + h) * D, (c * H + h) * V
                    if few(k1 - k0, q1 - q0, M, V):
                        for a in range(k0, k1, FEW_KEYS):
                            b = min(a + FEW_KEYS, k1)
                            for t in range(a, b):
                                if h == 0:
                                    fetch(k, korder, t, ks, c * H * D, H * D)
                                    fetch(v, korder, t, vs, c * H * V, H * V)
                                features(k, korder[t] * ks + atk, wt, eps, pointer(others, (t - a) * M), D, M, KIND, TURNED)
                            for t in range(q0, q1):
                                place = (qorder[t] * C + c) * H + h
                                if a == k0:
                                    if h == 0:
                                        fetch(q, qorder, t, qs, c * H * D, H * D)
                                    features(q, qorder[t] * qs + atq, wt, eps, phi, D, M, KIND, TURNED)
                                    norm = one - one
                                    clear(local, V)
                                norm += pairs(phi, others, b - a, v, vs, korder, a, atv, local, one - one, M, V)
                                if b == k1:
                                    write(local, norm, sums, norms, place, normalize, one, sign, tiny, V, ADDED)
                        continue
                    clear(state, S)
                    for t in range(k0, k1):
                        if h == 0:
                            fetch(k, korder, t, ks, c * H * D, H * D)
                            fetch(v, korder, t, vs, c * H * V, H * V)
                        features(k, korder[t] * ks + atk, wt, eps, phi, D, M, KIND, TURNED)
                        absorb(phi, pointer(v, korder[t] * vs + atv), one, state, M, V)
                    for t in range(q0, q1):
                        place = (qorder[t] * C + c) * H + h
                        if h == 0:
                            fetch(q, qorder, t, qs, c * H * D, H * D)
                        features(q, qorder[t] * qs + atq, wt, eps, phi, D, M, KIND, TURNED)
                        norm = answer(phi, state, local, M, V)
                        write(local, norm, sums, norms, place, normalize, one, sign, tiny, V, ADDED)

    @compiled
    def backward(  # type: ignore[no-untyped-def]
        q, k, v, qs, ks, vs, wt, w, eps, tiny, one, sign, korder, kptr, qorder, qptr, H,
        sums, norms, normalize, dsums, dnorms, dq, dk, dv, piece, g0, g1,
    ):  # fmt: skip
        C = len(qptr)
        phi, dphi, local, turned, dstate = stack(M, wt), stack(M, wt), stack(V, wt), stack(S, wt), stack(S, wt)
        others, dothers, dvalues = stack(MANY, wt), stack(MANY, wt), stack(VALUES, wt)
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
                    atq, atk, atv = (c * H + h) * D, (c * H + h) * D, (c * H + h) * V
                    if few(k1 - k0, q1 - q0, M, V):
                        for a in range(k0, k1, FEW_KEYS):
                            b = min(a + FEW_KEYS, k1)
                            for t in range(a, b):
                                if h == 0:
                                    fetch(k, korder, t, ks, c * H * D, H * D)
                                    fetch(v, korder, t, vs, c * H * V, H * V)
                                features(k, korder[t] * ks + atk, wt, eps, pointer(others, (t - a) * M), D, M, KIND, TURNED)
                                clear(pointer(dothers, (t - a) * M), M)
                                clear(pointer(dvalues, (t - a) * V), V)
                            for t in range(q0, q1):
                                place = (qorder[t] * C + c) * H + h
                                if a == k0:
                                    if h == 0:
                                        fetch(q, qorder, t, qs, c * H * D, H * D)
                                        fetch(sums, qorder, t, C * H * V, c * H * V, H * V)
                                        fetch(dsums, qorder, t, C * H * V, c * H * V, H * V)
                                    features(q, qorder[t] * qs + atq, wt, eps, phi, D, M, KIND, TURNED)
                                    dnorm = incoming(
                                        sums, norms, dsums, dnorms, place, normalize, one, sign, tiny, local, V, ADDED
                                    )
                                    clear(dphi, M)
                                ask_pairs(
                                    phi, dphi, others, dothers, b - a, v, vs, korder, a, atv, local, dnorm, dvalues, M, V
                                )
                                if b == k1:
                                    features_backward(
                                        w, eps, phi, dphi, one, pointer(dq, place * D), D, M, KIND, TURNED, ADDED
                                    )
                            for n in range(b - a):
                                place = (korder[a + n] * C + c) * H + h
                                other, dother = pointer(others, n * M), pointer(dothers, n * M)
                                features_backward(
                                    w, eps, other, dother, one, pointer(dk, place * D), D, M, KIND, TURNED, ADDED
                                )
                                if ADDED:
                                    add_scaled(pointer(dv, place * V), one, pointer(dvalues, n * V), V)
                                else:
                                    scaled(pointer(dv, place * V), one, pointer(dvalues, n * V), V)
                        continue
                    clear(turned, S)
                    clear(dstate, S)
                    for t in range(k0, k1):
                        if h == 0:
                            fetch(k, korder, t, ks, c * H * D, H * D)
                            fetch(v, korder, t, vs, c * H * V, H * V)
                        features(k, korder[t] * ks + atk, wt, eps, phi, D, M, KIND, TURNED)
                        absorb_turned(phi, pointer(v, korder[t] * vs + atv), one, turned, M, V)
                    for t in range(q0, q1):
                        place = (qorder[t] * C + c) * H + h
                        if h == 0:
                            fetch(q, qorder, t, qs, c * H * D, H * D)
                            fetch(sums, qorder, t, C * H * V, c * H * V, H * V)
                            fetch(dsums, qorder, t, C * H * V, c * H * V, H * V)
                        features(q, qorder[t] * qs + atq, wt, eps, phi, D, M, KIND, TURNED)
                        dnorm = incoming(sums, norms, dsums, dnorms, place, normalize, one, sign, tiny, local, V, ADDED)
                        ask(phi, dphi, local, dnorm, turned, dstate, M, V)
                        features_backward(w, eps, phi, dphi, one, pointer(dq, place * D), D, M, KIND, TURNED, ADDED)
                    transpose(dstate, turned, one, M, V)
                    for t in range(k0, k1):
                        place = (korder[t] * C + c) * H + h
                        features(k, korder[t] * ks + atk, wt, eps, phi, D, M, KIND, TURNED)
                        value = pointer(v, korder[t] * vs + atv)
                        give(phi, dphi, value, one, dstate, turned, pointer(dv, place * V), M, V, ADDED)
                        features_backward(w, eps, phi, dphi, one, pointer(dk, place * D), D, M, KIND, TURNED, ADDED)

    @compiled
    def states(q, k, v, qs, ks, vs, wt, w, eps, tiny, one, sign, korder, kptr, qorder, qptr, H, pieces, partial, n0, n1):  # type: ignore[no-untyped-def]
        C = len(qptr)
        phi = stack(M, wt)
        for n in range(n0, n1):
            for t in range(pieces[n, 2], pieces[n, 3]):
                fetch(k, korder, t, ks, 0, C * H * D)
                fetch(v, korder, t, vs, 0, C * H * V)
                for c in range(C):
                    for h in range(H):
                        s = c * H + h
                        features(k, korder[t] * ks + s * D, wt, eps, phi, D, M, KIND, TURNED)
                        absorb(phi, pointer(v, korder[t] * vs + s * V), one, pointer(partial[n], s * S), M, V)

    @compiled
    def apply(  # type: ignore[no-untyped-def]
        q,
        k,
        v,
        qs,
        ks,
        vs,
        wt,
        w,
        eps,
        tiny,
        one,
        sign,
        korder,
        kptr,
        qorder,
        qptr,
        H,
        whole,
        sums,
        norms,
        normalize,
        pieces,
        n0,
        n1,
    ):
        C = len(qptr)
        phi, local = stack(M, wt), stack(V, wt)
        for n in range(n0, n1):
            c = pieces[n, 1]
            for t in range(pieces[n, 2], pieces[n, 3]):
                fetch(q, qorder, t, qs, c * H * D, H * D)
                for h in range(H):
                    s = c * H + h
                    place = qorder[t] * C * H + s
                    features(q, qorder[t] * qs + s * D, wt, eps, phi, D, M, KIND, TURNED)
                    norm = answer(phi, pointer(whole[pieces[n, 0]], s * S), local, M, V)
                    write(local, norm, sums, norms, place, normalize, one, sign, tiny, V, ADDED)

    @compiled
    def query_backward(  # type: ignore[no-untyped-def]
        q, k, v, qs, ks, vs, wt, w, eps, tiny, one, sign, korder, kptr, qorder, qptr, H, whole,
        sums, norms, normalize, dsums, dnorms, dq, dk, dv, pieces, partial, n0, n1,
    ):  # fmt: skip
        C = len(qptr)
        phi, dphi, local, turned = stack(M, wt), stack(M, wt), stack(V, wt), stack(S, wt)
        for n in range(n0, n1):
            c = pieces[n, 1]
            for h in range(H):
                s = c * H + h
                state, dstate = pointer(whole[pieces[n, 0]], s * S), pointer(partial[n], s * S)
                transpose(state, turned, one, M, V)
                for t in range(pieces[n, 2], pieces[n, 3]):
                    place = qorder[t] * C * H + s
                    if h == 0:
                        fetch(q, qorder, t, qs, c * H * D, H * D)
                        fetch(sums, qorder, t, C * H * V, c * H * V, H * V)
                        fetch(dsums, qorder, t, C * H * V, c * H * V, H * V)
                    features(q, qorder[t] * qs + s * D, wt, eps, phi, D, M, KIND, TURNED)
                    dnorm = incoming(sums, norms, dsums, dnorms, place, normalize, one, sign, tiny, local, V, ADDED)
                    ask(phi, dphi, local, dnorm, turned, dstate, M, V)
                    features_backward(w, eps, phi, dphi, one, pointer(dq, place * D), D, M, KIND, TURNED, ADDED)

    @compiled
    def key_backward(  # type: ignore[no-untyped-def]
        q, k, v, qs, ks, vs, wt, w, eps, tiny, one, sign, korder, kptr, qorder, qptr, H, dstates, dk, dv, pieces, n0, n1
    ):
        C = len(qptr)
        phi, dphi, turned = stack(M, wt), stack(M, wt), stack(S, wt)
        for n in range(n0, n1):
            for c in range(C):
                for h in range(H):
                    s = c * H + h
                    dstate = pointer(dstates[pieces[n, 0]], s * S)
                    transpose(dstate, turned, one, M, V)
                    for t in range(pieces[n, 2], pieces[n, 3]):
                        place = korder[t] * C * H + s
                        if h == 0:
                            fetch(k, korder, t, ks, c * H * D, H * D)
                            fetch(v, korder, t, vs, c * H * V, H * V)
                        features(k, korder[t] * ks + s * D, wt, eps, phi, D, M, KIND, TURNED)
                        value = pointer(v, korder[t] * vs + s * V)
                        give(phi, dphi, value, one, dstate, turned, pointer(dv, place * V), M, V, ADDED)
                        features_backward(w, eps, phi, dphi, one, pointer(dk, place * D), D, M, KIND, TURNED, ADDED)

    return Loops(forward, backward, states, apply, query_backward, key_backward, S)
