"""The Triton kernels of segment linear attention: blocks of keys into the state of a group, blocks of queries out of it.

A state holds sum phi(k) v^T (feature, channel) and sum phi(k) (feature), for one class and head and for a block of features
and channels, in registers. Widths are padded to powers of two; what is padded is masked. Long groups are cut into pieces:
their states are stored, added up in order, and read by the pieces of their queries.
"""

# Triton reads annotations and names as they stand: D, V and M are the widths of a head and the number of features; BN, BD,
# BV and BM the rows, channels and features of a block; ``which`` is class * heads + head; VALUE and GRADIENT are an
# activation, TURNED says that it has directions.

from __future__ import annotations

from functools import cache
from typing import Any

import triton
import triton.language as tl

from anyorder.ops.activations import ACTIVATIONS


@triton.jit
def _positive(x):  # type: ignore[no-untyped-def]
    return tl.where(x < 0, 0, x)


@triton.jit
def _where_above(grad, x, bound):  # type: ignore[no-untyped-def]
    return tl.where(x > bound, grad, 0)


@triton.jit
def _where(condition, yes, no):  # type: ignore[no-untyped-def]
    return tl.where(condition, yes, no)


@triton.jit
def _exp(x):  # type: ignore[no-untyped-def]
    return tl.exp(x)


@cache
def formulas(kind: str) -> tuple[Any, Any]:
    """The value and the gradient of an activation, as functions that kernels call."""
    names = {"tl": tl, "where": _where, "exp": _exp, "positive": _positive, "where_above": _where_above}
    bound = ACTIVATIONS[kind].on(names)
    return triton.jit(bound.value), triton.jit(bound.gradient)


@triton.jit
def _rows(order, t, last, BN: tl.constexpr):  # type: ignore[no-untyped-def]
    """A block of the entries of a group, and which of its places hold one."""
    place = t + tl.arange(0, BN)
    live = place < last
    return tl.load(order + place, mask=live, other=0), live


@triton.jit
def _read(x, at, live, c0, W: tl.constexpr, BW: tl.constexpr):  # type: ignore[no-untyped-def]
    """(row, channel) from channel c0 on, zero where there is nothing; ``at`` is where the row's head begins."""
    c = c0 + tl.arange(0, BW)
    return tl.load(x + at[:, None] + c[None, :], mask=live[:, None] & (c < W)[None, :], other=0)


@triton.jit
def _write(x, at, live, c0, new, ADD: tl.constexpr, W: tl.constexpr, BW: tl.constexpr):  # type: ignore[no-untyped-def]
    """The reverse; ADD to what an earlier block of features or channels left there."""
    c = c0 + tl.arange(0, BW)
    where, there = x + at[:, None] + c[None, :], live[:, None] & (c < W)[None, :]
    if ADD:
        new += tl.load(where, mask=there, other=0)
    tl.store(where, new, mask=there)


@triton.jit
def _features(  # type: ignore[no-untyped-def]
    x, at, live, w, m0, EPS: tl.constexpr, VALUE: tl.constexpr, GRADIENT: tl.constexpr, TURNED: tl.constexpr,
    D: tl.constexpr, M: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """phi(x) for a block of features, zero where padded: the activation of w.x, or of x itself."""
    m = m0 + tl.arange(0, BM)
    if TURNED:
        scores = tl.zeros([BN, BM], x.dtype.element_ty)
        for d0 in range(0, D, BD):
            d = d0 + tl.arange(0, BD)
            turned = tl.load(w + m[None, :] * D + d[:, None], mask=(m < M)[None, :] & (d < D)[:, None], other=0)
            scores += tl.dot(_read(x, at, live, d0, D, BD), turned, input_precision="ieee")
    else:
        scores = _read(x, at, live, m0, M, BM)
    return tl.where(live[:, None] & (m < M)[None, :], VALUE(scores, EPS), 0)


@triton.jit
def _features_backward(  # type: ignore[no-untyped-def]
    phi, dphi, w, dx, to, live, m0, EPS: tl.constexpr, VALUE: tl.constexpr, GRADIENT: tl.constexpr, TURNED: tl.constexpr,
    ADD: tl.constexpr, D: tl.constexpr, M: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """The gradient of x from that of a block of phi(x)."""
    dphi = GRADIENT(dphi, phi, EPS)
    if TURNED:
        m = m0 + tl.arange(0, BM)
        for d0 in range(0, D, BD):
            d = d0 + tl.arange(0, BD)
            directions = tl.load(w + m[:, None] * D + d[None, :], mask=(m < M)[:, None] & (d < D)[None, :], other=0)
            _write(dx, to, live, d0, tl.dot(dphi, directions, input_precision="ieee"), ADD, D, BD)
    else:
        _write(dx, to, live, m0, dphi, ADD, M, BM)


@triton.jit
def _absorb(  # type: ignore[no-untyped-def]
    k, v, w, order, first, last, which, ks, vs, m0, v0, EPS: tl.constexpr, VALUE: tl.constexpr, GRADIENT: tl.constexpr,
    TURNED: tl.constexpr, D: tl.constexpr, V: tl.constexpr, M: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
    BV: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """The state of a range of keys."""
    state = tl.zeros([BM, BV], v.dtype.element_ty)
    norm = tl.zeros([BM], v.dtype.element_ty)
    for t in range(first, last, BN):
        i, live = _rows(order, t, last, BN)
        phi = _features(k, i * ks + which * D, live, w, m0, EPS, VALUE, GRADIENT, TURNED, D, M, BN, BD, BM)
        value = _read(v, i * vs + which * V, live, v0, V, BV)
        state += tl.dot(tl.trans(phi), value, input_precision="ieee")
        norm += tl.sum(phi, 0)
    return state, norm


@triton.jit
def _answer(  # type: ignore[no-untyped-def]
    q, w, order, first, last, which, wide, qs, m0, v0, state, norm, sums, norms, EPS: tl.constexpr, TINY: tl.constexpr,
    NORMALIZE: tl.constexpr, ADD: tl.constexpr, VALUE: tl.constexpr, GRADIENT: tl.constexpr, TURNED: tl.constexpr,
    D: tl.constexpr, V: tl.constexpr, M: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BV: tl.constexpr,
    BM: tl.constexpr,
):  # fmt: skip
    """What a range of queries reads from a state; ``wide`` is classes * heads."""
    for t in range(first, last, BN):
        j, live = _rows(order, t, last, BN)
        place = j * wide + which
        phi = _features(q, j * qs + which * D, live, w, m0, EPS, VALUE, GRADIENT, TURNED, D, M, BN, BD, BM)
        total = tl.dot(phi, state, input_precision="ieee")
        z = tl.sum(phi * norm[None, :], 1)
        if NORMALIZE:
            total = total / tl.maximum(z, TINY)[:, None]
        _write(sums, place * V, live, v0, total, ADD, V, BV)
        if v0 == 0:
            _write(norms, place, live, 0, z[:, None], ADD, 1, 1)


@triton.jit
def _ask(  # type: ignore[no-untyped-def]
    q, w, order, first, last, which, wide, qs, m0, v0, state, norm, dsums, dnorms, dq, EPS: tl.constexpr, ADD: tl.constexpr,
    VALUE: tl.constexpr, GRADIENT: tl.constexpr, TURNED: tl.constexpr, D: tl.constexpr, V: tl.constexpr, M: tl.constexpr,
    BN: tl.constexpr, BD: tl.constexpr, BV: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """Gradients of a range of queries, and of the state from them."""
    dstate = tl.zeros([BM, BV], q.dtype.element_ty)
    dnorm = tl.zeros([BM], q.dtype.element_ty)
    for t in range(first, last, BN):
        j, live = _rows(order, t, last, BN)
        place = j * wide + which
        phi = _features(q, j * qs + which * D, live, w, m0, EPS, VALUE, GRADIENT, TURNED, D, M, BN, BD, BM)
        incoming = _read(dsums, place * V, live, v0, V, BV)
        of_norm = tl.load(dnorms + place, mask=live, other=0)
        of_norm = tl.where(v0 == 0, of_norm, 0)  # the first block of channels brings the norms
        dphi = tl.dot(incoming, tl.trans(state), input_precision="ieee") + of_norm[:, None] * norm[None, :]
        dstate += tl.dot(tl.trans(phi), incoming, input_precision="ieee")
        dnorm += tl.sum(phi * of_norm[:, None], 0)
        _features_backward(phi, dphi, w, dq, place * D, live, m0, EPS, VALUE, GRADIENT, TURNED, ADD, D, M, BD, BM)
    return dstate, dnorm


@triton.jit
def _give(  # type: ignore[no-untyped-def]
    k, v, w, order, first, last, which, wide, ks, vs, m0, v0, dstate, dnorm, dk, dv, EPS: tl.constexpr, ADD: tl.constexpr,
    VALUE: tl.constexpr, GRADIENT: tl.constexpr, TURNED: tl.constexpr, D: tl.constexpr, V: tl.constexpr, M: tl.constexpr,
    BN: tl.constexpr, BD: tl.constexpr, BV: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """Gradients of a range of keys and values from that of their state."""
    for t in range(first, last, BN):
        i, live = _rows(order, t, last, BN)
        place = i * wide + which
        phi = _features(k, i * ks + which * D, live, w, m0, EPS, VALUE, GRADIENT, TURNED, D, M, BN, BD, BM)
        value = _read(v, i * vs + which * V, live, v0, V, BV)
        _write(dv, place * V, live, v0, tl.dot(phi, dstate, input_precision="ieee"), ADD, V, BV)
        dphi = tl.dot(value, tl.trans(dstate), input_precision="ieee") + dnorm[None, :]
        _features_backward(phi, dphi, w, dk, place * D, live, m0, EPS, VALUE, GRADIENT, TURNED, ADD, D, M, BD, BM)


@triton.jit
def _load_state(states, n, BV: tl.constexpr, BM: tl.constexpr):  # type: ignore[no-untyped-def]
    m, c = tl.arange(0, BM), tl.arange(0, BV)
    at = states + n * (BM * BV + BM)
    return tl.load(at + m[:, None] * BV + c[None, :]), tl.load(at + BM * BV + m)


@triton.jit
def _store_state(states, n, state, norm, BV: tl.constexpr, BM: tl.constexpr):  # type: ignore[no-untyped-def]
    m, c = tl.arange(0, BM), tl.arange(0, BV)
    at = states + n * (BM * BV + BM)
    tl.store(at + m[:, None] * BV + c[None, :], state)
    tl.store(at + BM * BV + m, norm)


@triton.jit
def forward_groups(  # type: ignore[no-untyped-def]
    q, k, v, w, qs, ks, vs, korder, kfirst, klast, qorder, qfirst, qlast, groups, heads, wide, sums, norms, m0, v0,
    EPS: tl.constexpr, TINY: tl.constexpr, NORMALIZE: tl.constexpr, ADD: tl.constexpr, VALUE: tl.constexpr,
    GRADIENT: tl.constexpr, TURNED: tl.constexpr, D: tl.constexpr, V: tl.constexpr, M: tl.constexpr, BN: tl.constexpr,
    BD: tl.constexpr, BV: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """One group, class and head: its keys, then its queries."""
    g, which = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    a = which // heads * groups + g
    state, norm = _absorb(
        k, v, w, korder, tl.load(kfirst + a), tl.load(klast + a), which, ks, vs, m0, v0, EPS, VALUE, GRADIENT, TURNED, D, V,
        M, BN, BD, BV, BM
    )  # fmt: skip
    _answer(
        q, w, qorder, tl.load(qfirst + a), tl.load(qlast + a), which, wide, qs, m0, v0, state, norm, sums, norms, EPS, TINY,
        NORMALIZE, ADD, VALUE, GRADIENT, TURNED, D, V, M, BN, BD, BV, BM,
    )  # fmt: skip


@triton.jit
def backward_groups(  # type: ignore[no-untyped-def]
    q, k, v, w, qs, ks, vs, korder, kfirst, klast, qorder, qfirst, qlast, groups, heads, wide, dsums, dnorms, dq, dk, dv,
    m0, v0, EPS: tl.constexpr, ADD: tl.constexpr, VALUE: tl.constexpr, GRADIENT: tl.constexpr, TURNED: tl.constexpr,
    D: tl.constexpr, V: tl.constexpr, M: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BV: tl.constexpr,
    BM: tl.constexpr,
):  # fmt: skip
    """One group, class and head: its keys, its queries, and its keys again."""
    g, which = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    a = which // heads * groups + g
    k0, k1 = tl.load(kfirst + a), tl.load(klast + a)
    state, norm = _absorb(
        k, v, w, korder, k0, k1, which, ks, vs, m0, v0, EPS, VALUE, GRADIENT, TURNED, D, V, M, BN, BD, BV, BM
    )
    dstate, dnorm = _ask(
        q, w, qorder, tl.load(qfirst + a), tl.load(qlast + a), which, wide, qs, m0, v0, state, norm, dsums, dnorms, dq, EPS,
        ADD, VALUE, GRADIENT, TURNED, D, V, M, BN, BD, BV, BM,
    )  # fmt: skip
    _give(
        k, v, w, korder, k0, k1, which, wide, ks, vs, m0, v0, dstate, dnorm, dk, dv, EPS, ADD, VALUE, GRADIENT, TURNED, D,
        V, M, BN, BD, BV, BM
    )  # fmt: skip


@triton.jit
def absorb_pieces(  # type: ignore[no-untyped-def]
    k, v, w, ks, vs, order, first, last, row, heads, states, m0, v0, EPS: tl.constexpr, VALUE: tl.constexpr,
    GRADIENT: tl.constexpr, TURNED: tl.constexpr, D: tl.constexpr, V: tl.constexpr, M: tl.constexpr, BN: tl.constexpr,
    BD: tl.constexpr, BV: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """The state of one piece of keys; ``row`` says of which class."""
    n, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    which = tl.load(row + n) * heads + head
    state, norm = _absorb(
        k, v, w, order, tl.load(first + n), tl.load(last + n), which, ks, vs, m0, v0, EPS, VALUE, GRADIENT, TURNED, D, V, M,
        BN, BD, BV, BM
    )  # fmt: skip
    _store_state(states, n * heads + head, state, norm, BV, BM)


@triton.jit
def add_states(parts, first, last, heads, total, BV: tl.constexpr, BM: tl.constexpr):  # type: ignore[no-untyped-def]
    """The states of a group's pieces, added up in their order."""
    n, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    state, norm = tl.zeros([BM, BV], parts.dtype.element_ty), tl.zeros([BM], parts.dtype.element_ty)
    for piece in range(tl.load(first + n), tl.load(last + n)):
        more, more_norm = _load_state(parts, piece * heads + head, BV, BM)
        state += more
        norm += more_norm
    _store_state(total, n * heads + head, state, norm, BV, BM)


@triton.jit
def answer_pieces(  # type: ignore[no-untyped-def]
    q, w, qs, order, first, last, row, slot, heads, wide, states, sums, norms, m0, v0, EPS: tl.constexpr,
    TINY: tl.constexpr, NORMALIZE: tl.constexpr, ADD: tl.constexpr, VALUE: tl.constexpr, GRADIENT: tl.constexpr,
    TURNED: tl.constexpr, D: tl.constexpr, V: tl.constexpr, M: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
    BV: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """One piece of queries; ``slot`` says where the state of its group stands."""
    n, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    which = tl.load(row + n) * heads + head
    state, norm = _load_state(states, tl.load(slot + n) * heads + head, BV, BM)
    _answer(
        q, w, order, tl.load(first + n), tl.load(last + n), which, wide, qs, m0, v0, state, norm, sums, norms, EPS, TINY,
        NORMALIZE, ADD, VALUE, GRADIENT, TURNED, D, V, M, BN, BD, BV, BM,
    )  # fmt: skip


@triton.jit
def ask_pieces(  # type: ignore[no-untyped-def]
    q, w, qs, order, first, last, row, slot, heads, wide, states, dsums, dnorms, dq, dstates, m0, v0, EPS: tl.constexpr,
    ADD: tl.constexpr, VALUE: tl.constexpr, GRADIENT: tl.constexpr, TURNED: tl.constexpr, D: tl.constexpr, V: tl.constexpr,
    M: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BV: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """Gradients of one piece of queries, and of the state from them."""
    n, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    which = tl.load(row + n) * heads + head
    state, norm = _load_state(states, tl.load(slot + n) * heads + head, BV, BM)
    dstate, dnorm = _ask(
        q, w, order, tl.load(first + n), tl.load(last + n), which, wide, qs, m0, v0, state, norm, dsums, dnorms, dq, EPS,
        ADD, VALUE, GRADIENT, TURNED, D, V, M, BN, BD, BV, BM,
    )  # fmt: skip
    _store_state(dstates, n * heads + head, dstate, dnorm, BV, BM)


@triton.jit
def give_pieces(  # type: ignore[no-untyped-def]
    k, v, w, ks, vs, order, first, last, row, slot, heads, wide, dstates, dk, dv, m0, v0, EPS: tl.constexpr,
    ADD: tl.constexpr, VALUE: tl.constexpr, GRADIENT: tl.constexpr, TURNED: tl.constexpr, D: tl.constexpr, V: tl.constexpr,
    M: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BV: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """Gradients of one piece of keys and values from that of the state of their group."""
    n, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    which = tl.load(row + n) * heads + head
    dstate, dnorm = _load_state(dstates, tl.load(slot + n) * heads + head, BV, BM)
    _give(
        k, v, w, order, tl.load(first + n), tl.load(last + n), which, wide, ks, vs, m0, v0, dstate, dnorm, dk, dv, EPS, ADD,
        VALUE, GRADIENT, TURNED, D, V, M, BN, BD, BV, BM,
    )  # fmt: skip
