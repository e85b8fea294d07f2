"""Models that answer with one row per molecule: ours, MLP_pi, a Transformer with Laplacian positions, and baselines."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from anyorder.algebra import Lightweight, Projecting, Sharing
from anyorder.experiments.molecules.baselines import (
    CategoricalEncoder,
    FingerprintMLP,
    GCNConvolution,
    GINConvolution,
    MoleculeGNN,
)
from anyorder.experiments.molecules.batch import MoleculeBatch
from anyorder.experiments.molecules.goals import Goal, MoleculeShapes, goal_of
from anyorder.experiments.molecules.graphs import ATOM_FEATURES, BOND_FEATURES
from anyorder.experiments.molecules.inputs import MoleculeInputs
from anyorder.layers import EncoderLayer, EquivariantLinear, Kernel, RandomFeatures
from anyorder.layouts import Features
from anyorder.models import EquivariantMLP
from anyorder.positions import flip_signs
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig


class AtomsAndBonds(nn.Module):
    """Order-2 features: embedded atoms on the diagonal, embedded bonds off it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.atoms = CategoricalEncoder(tuple(ATOM_FEATURES.values()), channels)
        self.bonds = CategoricalEncoder(tuple(BOND_FEATURES.values()), channels)

    def forward(self, batch: MoleculeBatch) -> Features:
        assert batch.index is not None
        return Features.of_rows(batch.index, torch.cat([self.atoms(batch.atoms), self.bonds(batch.bonds)]))


class AtomsAndPositions(nn.Module):
    """Order-1 features: embedded atoms plus a linear map of their Laplacian positions, signs at random in training."""

    def __init__(self, channels: int, position_channels: int) -> None:
        super().__init__()
        self.atoms = CategoricalEncoder(tuple(ATOM_FEATURES.values()), channels)
        self.positions = nn.Linear(position_channels, channels)

    def forward(self, batch: MoleculeBatch) -> Features:
        assert batch.index is not None and batch.positions is not None
        positions = batch.positions.to(self.positions.weight.dtype)
        if self.training:
            positions = flip_signs(positions, batch.graph, batch.num_graphs)
        return Features.of_rows(batch.index, self.atoms(batch.atoms) + self.positions(positions))


class EncoderStack(nn.Module):
    """Encoder layers, the last to order 0, LayerNorm, linear head."""

    def __init__(self, layers: Sequence[EncoderLayer], channels: int, channels_out: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(channels)
        self.head = nn.Linear(channels, channels_out)

    def forward(self, x: Features) -> Features:
        for layer in self.layers:
            x = layer(x)
        return x.with_rows(self.head(self.norm(x.rows)))


class OnMolecules(nn.Module):
    """An embedding of molecules as features, and a model from them to order 0: (molecule, channel)."""

    def __init__(self, embed: nn.Module, body: nn.Module) -> None:
        super().__init__()
        self.embed, self.body = embed, body

    def forward(self, batch: MoleculeBatch) -> Tensor:
        out: Features = self.body(self.embed(batch))
        return out.rows


class Predictor(nn.Module):
    """A network on molecules and what is asked of it."""

    def __init__(self, network: nn.Module, goal: Goal) -> None:
        super().__init__()
        self.network, self.goal = network, goal

    def forward(self, batch: MoleculeBatch) -> Tensor:
        out: Tensor = self.network(batch)
        return out


@dataclass(frozen=True)
class MoleculeModel(ModelConfig):
    """A model of molecules: what it reads of them, and the network for so many outputs."""

    @property
    @abstractmethod
    def inputs(self) -> MoleculeInputs:
        """What makes its batches."""

    @abstractmethod
    def network(self, channels_out: int) -> nn.Module:
        """From a `MoleculeBatch` to (molecule, channels_out)."""

    def build(self, shapes: MoleculeShapes) -> Predictor:
        goal = goal_of(shapes)
        return Predictor(self.network(goal.channels_out), goal)


@configurable
@dataclass(frozen=True)
class MoleculeEncoder(MoleculeModel):
    """Ours (S, phi), with a softmax kernel Ours (S): second-order encoder layers, then one from order 2 to 0."""

    layers: int = 8
    channels: int = 256
    heads: int = 4
    head_channels: int = 8
    pool_heads: int = 8
    """Of the last layer."""
    pool_head_channels: int = 16
    kernel: Kernel = field(default_factory=RandomFeatures)
    coupling: Literal["relaxed", "exact"] | None = None
    classes: Literal["all", "without global", "into nodes"] = "all"
    dropout: float = 0.1
    sharing: Sharing = "none"
    projection_classes: Projecting = "pointwise"
    output_rank: int | None = None
    mlp_classes: Lightweight = "pointwise"
    direct: bool = True
    channels_hidden: int | None = None

    @property
    def inputs(self) -> MoleculeInputs:
        return MoleculeInputs(
            2,
            self.kernel.attention(self.coupling or "relaxed"),
            sharing=self.sharing,
            projection_classes=self.projection_classes,
            mlp_classes=self.mlp_classes,
            direct=self.direct,
            classes=self.classes,
        )

    def network(self, channels_out: int) -> nn.Module:
        inner = [
            EncoderLayer(
                order_in=2,
                order_out=2,
                channels=self.channels,
                heads=self.heads,
                head_channels=self.head_channels,
                kernel=self.kernel,
                coupling=self.coupling,
                classes=self.classes,
                dropout=self.dropout,
                sharing=self.sharing,
                projection_classes=self.projection_classes,
                output_rank=self.output_rank,
                mlp_classes=self.mlp_classes,
                direct=self.direct,
                channels_hidden=self.channels_hidden,
            )
            for _ in range(self.layers)
        ]
        last = _pooling(2, self.channels, self.pool_heads, self.pool_head_channels, self.dropout)
        return OnMolecules(AtomsAndBonds(self.channels), EncoderStack([*inner, last], self.channels, channels_out))


@configurable
@dataclass(frozen=True)
class MoleculeTransformer(MoleculeModel):
    """Transformer + Laplacian PE: first-order encoder layers on atoms, then one from order 1 to 0."""

    layers: int = 8
    channels: int = 256
    heads: int = 16
    head_channels: int = 16
    position_channels: int = 8
    """Laplacian vectors; the paper does not say how many."""
    dropout: float = 0.1

    @property
    def inputs(self) -> MoleculeInputs:
        return MoleculeInputs(1, "softmax", position_channels=self.position_channels)

    def network(self, channels_out: int) -> nn.Module:
        inner = [
            EncoderLayer(
                order_in=1,
                order_out=1,
                channels=self.channels,
                heads=self.heads,
                head_channels=self.head_channels,
                dropout=self.dropout,
            )
            for _ in range(self.layers)
        ]
        last = _pooling(1, self.channels, self.heads, self.head_channels, self.dropout)
        embed = AtomsAndPositions(self.channels, self.position_channels)
        return OnMolecules(embed, EncoderStack([*inner, last], self.channels, channels_out))


@configurable
@dataclass(frozen=True)
class MoleculeMLP(MoleculeModel):
    """MLP_pi (S): second-order equivariant linear layers with ReLU, then one from order 2 to 0."""

    layers: int = 8
    channels: int = 256
    reduce: Literal["sum", "mean"] = "sum"
    dropout: float = 0.1

    @property
    def inputs(self) -> MoleculeInputs:
        return MoleculeInputs(2, "linear")

    def network(self, channels_out: int) -> nn.Module:
        body = EquivariantMLP(
            order_in=2,
            orders=(2,) * self.layers + (0,),
            channels_in=self.channels,
            channels=self.channels,
            channels_out=channels_out,
            reduce=self.reduce,
            dropout=self.dropout,
            start="uniform",
        )
        if self.reduce == "sum":
            calm(body)
        return OnMolecules(AtomsAndBonds(self.channels), body)


@configurable
@dataclass(frozen=True)
class MoleculeMessagePassing(MoleculeModel):
    """GCN, GIN, and both with a virtual node."""

    convolution: Literal["gcn", "gin"] = "gin"
    virtual_node: bool = False
    layers: int = 5
    channels: int = 600
    pooling: Literal["sum", "mean"] = "sum"
    dropout: float = 0.0

    @property
    def inputs(self) -> MoleculeInputs:
        return MoleculeInputs()

    def network(self, channels_out: int) -> nn.Module:
        return MoleculeGNN(
            convolution=GCNConvolution if self.convolution == "gcn" else GINConvolution,
            virtual_node=self.virtual_node,
            num_layers=self.layers,
            channels=self.channels,
            dropout=self.dropout,
            pooling=self.pooling,
            channels_out=channels_out,
        )


@configurable
@dataclass(frozen=True)
class MoleculeFingerprint(MoleculeModel):
    """MLP-FINGERPRINT: a multilayer perceptron on Morgan fingerprints."""

    layers: int = 6
    channels: int = 1600
    dropout: float = 0.2

    @property
    def inputs(self) -> MoleculeInputs:
        return MoleculeInputs(fingerprints=True)

    def network(self, channels_out: int) -> nn.Module:
        return FingerprintMLP(
            num_layers=self.layers, channels=self.channels, dropout=self.dropout, channels_out=channels_out
        )


# How many entries a class sums over in a molecule of ordinary size, roughly.
SUMMED = {"pointwise": 1, "local": 2, "global": 20}


def calm(model: EquivariantMLP) -> None:
    """Scale the first weights so that activations neither grow nor fade through sums and ReLU: no norm holds them.

    As drawn, each layer would multiply them many times over on a molecule, and no learning rate would do for all layers.
    """
    for layer in model.layers:
        assert isinstance(layer, EquivariantLinear)
        for cls, weight in zip(layer.classes, layer.weight.data, strict=True):
            together = sum(other.target == cls.target for other in layer.classes)
            weight *= math.sqrt(6 / together) / SUMMED[cls.kind]  # 6: uniform weights, half of them past ReLU


def _pooling(order: int, channels: int, heads: int, head_channels: int, dropout: float) -> EncoderLayer:
    """The layer that makes one row of a molecule."""
    return EncoderLayer(
        order_in=order, order_out=0, channels=channels, heads=heads, head_channels=head_channels, dropout=dropout
    )
