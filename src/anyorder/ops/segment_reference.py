"""Segment linear attention with plain tensor operations: any device, any type; the measure of all other versions."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def features(x: Tensor, directions: Tensor | None, kind: str, eps: float) -> Tensor:
    """phi(x) over the last axis."""
    if kind == "none":
        return x
    if kind == "elu":
        return functional.elu(x) + 1
    assert directions is not None and kind == "relu"
    return (x @ directions.to(x.dtype).T).relu() + eps


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    directions: Tensor | None,
    key_order: Tensor,
    key_pointer: Tensor,
    query_order: Tensor,
    query_pointer: Tensor,
    kind: str,
    eps: float,
    normalize: bool,
) -> tuple[Tensor, Tensor]:
    """Sums (query, class, head, channel) and norms (query, class, head), class by class."""
    sums, norms = [], []
    groups = torch.arange(len(key_pointer) - 1, device=key.device)
    group_of_key = torch.repeat_interleave(groups, key_pointer.diff())
    for c, pointer in enumerate(query_pointer):
        phi_key = features(key[:, c].index_select(0, key_order), directions, kind, eps)
        ones = torch.ones_like(value[:, c, :, :1])
        widened = torch.cat([value[:, c], ones], -1).index_select(0, key_order)
        products = phi_key.unsqueeze(-1) * widened.unsqueeze(-2)
        states = products.new_zeros(len(groups), *products.shape[1:]).index_add(0, group_of_key, products)
        asked = query_order[int(pointer[0]) : int(pointer[-1])]
        phi_query = features(query[:, c].index_select(0, asked), directions, kind, eps)
        read = states.index_select(0, torch.repeat_interleave(groups, pointer.diff()))
        answer = torch.einsum("qhm,qhmc->qhc", phi_query, read)
        whole = answer.new_zeros(len(query), *answer.shape[1:]).index_copy(0, asked, answer)
        sums.append(whole[..., :-1])
        norms.append(whole[..., -1])
    total, norm = torch.stack(sums, 1), torch.stack(norms, 1)
    if normalize:
        total = total / norm.clamp(min=torch.finfo(norm.dtype).tiny).unsqueeze(-1)
    return total, norm


def backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    directions: Tensor | None,
    key_order: Tensor,
    key_pointer: Tensor,
    query_order: Tensor,
    query_pointer: Tensor,
    kind: str,
    eps: float,
    normalize: bool,
    sums: Tensor,
    norms: Tensor,
    grad_sums: Tensor,
    grad_norms: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value, by the chain rule through the states of the groups."""
    if normalize:  # of N and Z from that of N / Z
        tiny = torch.finfo(norms.dtype).tiny
        scale = torch.where(norms > tiny, 1 / norms.clamp(min=tiny), 0)  # a query without keys has no gradient
        grad_norms = -(grad_sums * sums).sum(-1) * scale
        grad_sums = grad_sums * scale.unsqueeze(-1)
    groups = torch.arange(len(key_pointer) - 1, device=key.device)
    group_of_key = torch.repeat_interleave(groups, key_pointer.diff())
    grads = [torch.zeros_like(part, memory_format=torch.contiguous_format) for part in (query, key, value)]
    for c, pointer in enumerate(query_pointer):
        asked = query_order[int(pointer[0]) : int(pointer[-1])]
        group_of_query = torch.repeat_interleave(groups, pointer.diff())
        picked_key, picked_query = key[:, c].index_select(0, key_order), query[:, c].index_select(0, asked)
        phi_key, phi_query = (features(part, directions, kind, eps) for part in (picked_key, picked_query))
        widened = torch.cat([value[:, c], torch.ones_like(value[:, c, :, :1])], -1).index_select(0, key_order)
        incoming = torch.cat([grad_sums[:, c], grad_norms[:, c].unsqueeze(-1)], -1).index_select(0, asked)
        shape = (len(groups), *phi_key.shape[1:], widened.shape[-1])
        states = value.new_zeros(shape).index_add(0, group_of_key, phi_key.unsqueeze(-1) * widened.unsqueeze(-2))
        grad_states = value.new_zeros(shape).index_add(0, group_of_query, phi_query.unsqueeze(-1) * incoming.unsqueeze(-2))
        read = grad_states.index_select(0, group_of_key)
        grad_phi_query = torch.einsum("qhmc,qhc->qhm", states.index_select(0, group_of_query), incoming)
        grad_phi_key = torch.einsum("khmc,khc->khm", read, widened)
        grads[0][:, c].index_copy_(0, asked, _features_backward(picked_query, grad_phi_query, directions, kind))
        grads[1][:, c].index_copy_(0, key_order, _features_backward(picked_key, grad_phi_key, directions, kind))
        grads[2][:, c].index_copy_(0, key_order, torch.einsum("khm,khmc->khc", phi_key, read[..., :-1]))
    return grads[0], grads[1], grads[2]


def _features_backward(x: Tensor, grad: Tensor, directions: Tensor | None, kind: str) -> Tensor:
    if kind == "none":
        return grad
    if kind == "elu":
        return grad * torch.where(x > 0, 1, x.exp())
    assert directions is not None
    directions = directions.to(x.dtype)
    return torch.where(x @ directions.T > 0, grad, 0) @ directions
