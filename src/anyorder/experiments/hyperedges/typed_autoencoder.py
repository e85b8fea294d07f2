"""Node embeddings from sparse features: one tied autoencoder per node type, on the nonzeros alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from anyorder.experiments.hyperedges.cooccurrence import SparseRows
from anyorder.experiments.hyperedges.sparse_products import Pattern, dots_at, sparse_times_dense
from anyorder.experiments.hyperedges.tuples import offsets_of


class TypedAutoencoder(nn.Module):
    r"""Embeds nodes with one tied autoencoder a type, all types in one pass over the nonzeros of their features.

    .. math:: h_i = \tanh(W_t^\top \mathrm{dropout}(x_i) + b_t), \quad y_i = \mathrm{LayerNorm}_t(h_i), \quad
              \hat x_i = W_t h_i + c_t

    Node ids run through the types in order, as in ``TypedHyperedges``. A zero of x costs nothing and is not
    reconstructed.
    """

    starts: Tensor
    columns: Tensor
    order: Tensor
    column_starts: Tensor
    rows: Tensor
    values: Tensor
    kind: Tensor

    def __init__(self, features: Sequence[SparseRows], *, channels: int = 64, dropout: float = 0.25) -> None:
        super().__init__()
        if not features:
            raise ValueError("expected the features of at least one node type, got none")
        self.channels = channels
        self.dropout = dropout
        self.widths = tuple(matrix.shape[1] for matrix in features)
        shifts = offsets_of(self.widths)
        counts = np.concatenate([np.diff(matrix.starts) for matrix in features])
        starts = torch.from_numpy(np.concatenate([[0], np.cumsum(counts)]))
        columns = np.concatenate([matrix.indices + shift for matrix, shift in zip(features, shifts, strict=True)])
        pattern = Pattern.of(starts, torch.from_numpy(columns), sum(self.widths))
        values = np.concatenate([matrix.values for matrix in features])
        kind = np.repeat(np.arange(len(features)), [matrix.shape[0] for matrix in features])
        buffers = asdict(pattern) | {
            "values": torch.tensor(values, dtype=torch.get_default_dtype()),
            "kind": torch.from_numpy(kind),
        }
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor, persistent=False)
        self.weight = nn.Parameter(torch.empty(sum(self.widths), channels))
        self.column_bias = nn.Parameter(torch.zeros(sum(self.widths)))
        self.bias = nn.Parameter(torch.zeros(len(features), channels))
        self.norm_weight = nn.Parameter(torch.ones(len(features), channels))
        self.norm_bias = nn.Parameter(torch.zeros(len(features), channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights uniformly, with the fan of each type's own autoencoder (Glorot)."""
        for block in self.weight.detach().split(list(self.widths)):
            if len(block):
                nn.init.xavier_uniform_(block)

    @property
    def num_nodes(self) -> int:
        return len(self.kind)

    def forward(self, nodes: Tensor | None = None) -> Tensor:
        """Embeddings (n, channels) of ``nodes``, or of all nodes in order."""
        kind = self.kind if nodes is None else self.kind[nodes]
        return self._normalised(self._hidden(*self._rows(nodes), kind), kind)

    def reconstruction_loss(self, nodes: Tensor | None = None) -> Tensor:
        r"""Squared error on the nonzeros over their number, mean over the rows of a type, summed over types.

        .. math:: \sum_t \frac{1}{|N_t|} \sum_{i \in N_t} \frac{1}{|x_i|_0}
                  \sum_{j: x_{ij} \ne 0} (\hat x_{ij} - x_{ij})^2
        """
        return self.with_loss(nodes)[1]

    def with_loss(self, nodes: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Embeddings and reconstruction loss of ``nodes`` (different ones), or of all, from one encoding."""
        kind = self.kind if nodes is None else self.kind[nodes]
        pattern, values = self._rows(nodes)
        hidden = self._hidden(pattern, values, kind)
        rebuilt = dots_at(hidden, self.weight, pattern) + self.column_bias[pattern.columns]
        of_type = torch.bincount(kind, minlength=len(self.widths))
        share = 1 / (pattern.starts.diff() * of_type[kind]).clamp(min=1).to(values.dtype)
        loss = ((rebuilt - values).square() * share[pattern.rows]).sum()
        return self._normalised(hidden, kind), loss

    def _rows(self, nodes: Tensor | None) -> tuple[Pattern, Tensor]:
        """The nonzeros of some rows, or of all."""
        if nodes is None:
            return Pattern(**{field.name: getattr(self, field.name) for field in fields(Pattern)}), self.values
        counts = self.starts[nodes + 1] - self.starts[nodes]
        ends = counts.cumsum(0)
        shift = torch.repeat_interleave(self.starts[nodes] - ends + counts, counts)
        where = torch.arange(len(shift), device=nodes.device) + shift
        pattern = Pattern.of(functional.pad(ends, (1, 0)), self.columns[where], len(self.weight))
        return pattern, self.values[where]

    def _hidden(self, pattern: Pattern, values: Tensor, kind: Tensor) -> Tensor:
        kept = functional.dropout(values, self.dropout, self.training)
        return torch.tanh(sparse_times_dense(kept, self.weight, pattern) + self.bias[kind])

    def _normalised(self, hidden: Tensor, kind: Tensor) -> Tensor:
        normed = functional.layer_norm(hidden, (self.channels,))
        return normed * self.norm_weight[kind] + self.norm_bias[kind]
