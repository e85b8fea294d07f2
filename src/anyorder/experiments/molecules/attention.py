"""Where a trained model looks: attention of a layer on the atoms and bonds of a molecule, as numbers and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import torch
from torch import Tensor, nn

from anyorder.algebra import EquivalenceClass, meaning
from anyorder.experiments.molecules.graphs import read_smiles
from anyorder.experiments.molecules.inputs import MoleculeInputs
from anyorder.experiments.molecules.store import Molecule
from anyorder.extras import require
from anyorder.layers import EncoderLayer, EquivariantAttention
from anyorder.layers.attention_maps import attention_map
from anyorder.layouts import Features
from anyorder.training.pictures import add_colour_bar, check_picture, contrast_colours, figure_into


@dataclass(frozen=True, eq=False)
class MoleculeAttention:
    """The attention that atoms and bonds of a molecule receive, as shares that add up to 1; None where it has none."""

    smiles: str
    title: str
    atoms: Tensor | None
    bonds: Tensor | None
    atom: int | None = None
    """Whose attention it is; None for the mean over all entries."""

    def lines(self, count: int = 5) -> list[str]:
        """The atoms and bonds with the most attention, in words."""
        molecule = read_smiles(self.smiles)
        symbols = [f"{atom.GetSymbol()}{atom.GetIdx()}" for atom in molecule.GetAtoms()]
        ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
        found = []
        if self.atoms is not None:
            found.append("atoms: " + _most(self.atoms, symbols, count))
        if self.bonds is not None and len(ends):
            found.append("bonds: " + _most(self.bonds, [f"{symbols[a]}-{symbols[b]}" for a, b in ends], count))
        return found


def explain(
    model: nn.Module,
    inputs: MoleculeInputs,
    smiles: str,
    *,
    layer: int | None = None,
    cls: str | None = None,
    atom: int | None = None,
) -> MoleculeAttention:
    """The attention that the atoms and bonds of a molecule receive in a layer (counted from 1; default: the last).

    Without a class all classes of the layer count alike. The mean is taken over heads and output entries; with ``atom``
    over the entries that this atom is part of.
    """
    molecule = Molecule.from_smiles(smiles)
    layers = [part for part in model.modules() if isinstance(part, EncoderLayer)]
    number = len(layers) if layer is None else layer
    if not layers:
        raise ValueError("this model has no attention to show: train one of ours, or a Transformer")
    if not 1 <= number <= len(layers):
        raise ValueError(f"layer must be between 1 and {len(layers)}, got {layer}")
    attention = layers[number - 1].attention
    _check_atom(atom, len(molecule.atoms), attention, number)
    chosen = find_classes(attention, cls)
    shown = _shares(attention, _input_of(attention, model, inputs, molecule), chosen, atom)
    what = f"class {chosen[0].name}: {meaning(chosen[0])}" if len(chosen) == 1 else "all classes"
    title = f"layer {number} of {len(layers)}, {what}" + ("" if atom is None else f", for atom {atom}")
    return MoleculeAttention(smiles, title, shown.get("atoms"), shown.get("bonds"), atom)


def _check_atom(atom: int | None, num_atoms: int, attention: EquivariantAttention, number: int) -> None:
    if atom is None:
        return
    if not 0 <= atom < num_atoms:
        raise ValueError(f"atom must be between 0 and {num_atoms - 1}, got {atom}")
    if attention.order_out == 0:
        raise ValueError(f"layer {number} answers for the whole molecule: leave out the atom or choose an earlier layer")


def _shares(
    attention: EquivariantAttention, x: Features, chosen: Sequence[EquivalenceClass], atom: int | None
) -> dict[str, Tensor]:
    """What atoms, or bonds, receive from the classes that read them, as shares of the whole."""
    bonds = (x.index.num_entries - x.num_nodes) // 2
    received: dict[str, Tensor] = {}
    for cls in chosen:
        share = _received(attention, x, cls, atom)
        kind, places = ("atoms", x.num_nodes) if cls.source.num_blocks == 1 else ("bonds", bonds)
        # both directions of a bond follow each other
        place = x.index.entries(cls.source).tuples[:, 0] if kind == "atoms" else torch.arange(len(share)) // 2
        received[kind] = received.get(kind, share.new_zeros(places)).index_add(0, place, share)
    return {kind: total / total.sum().clamp(min=1e-12) for kind, total in received.items()}


def find_classes(attention: EquivariantAttention, name: str | None) -> Sequence[EquivalenceClass]:
    """The class of a name, spaces aside, or all classes that have attention."""
    if name is None:
        return attention.pooled
    known = {each.name: each for each in attention.pooled}
    matches = [each for text, each in known.items() if text.replace(" ", "") == name.replace(" ", "")]
    if not matches:
        raise ValueError(f"this layer has no attention of class {name!r}; it has {', '.join(known)}")
    return matches


def draw(found: MoleculeAttention, path: Path, *, size: tuple[int, int] = (900, 640)) -> Path:
    """Draw the molecule: colours say how much more or less attention atoms and bonds receive than if all were equal."""
    drawing = require("rdkit.Chem.Draw.rdMolDraw2D", "molecules")
    check_picture(path)
    molecule, canvas = read_smiles(found.smiles), drawing.MolDraw2DCairo(*size)
    options = canvas.drawOptions()
    options.fillHighlights = True
    options.useBWAtomPalette()
    atoms, bonds = (_colours(shares) for shares in (found.atoms, found.bonds))
    if found.atom is not None:
        molecule.GetAtomWithIdx(found.atom).SetProp("atomNote", "here")
    drawing.PrepareAndDrawMolecule(
        canvas,
        molecule,
        highlightAtoms=[*atoms],
        highlightAtomColors=atoms,
        highlightAtomRadii=dict.fromkeys(atoms, 0.35),
        highlightBonds=[*bonds],
        highlightBondColors=bonds,
    )
    canvas.FinishDrawing()
    pyplot = require("matplotlib.pyplot", "plot")
    with figure_into(path, found.title) as (figure, axes):
        axes.imshow(pyplot.imread(BytesIO(canvas.GetDrawingText()), format="png"))
        add_colour_bar(figure, axes)
    return path


def _input_of(attention: EquivariantAttention, model: nn.Module, inputs: MoleculeInputs, molecule: Molecule) -> Features:
    """What an attention reads when the model sees a molecule."""
    seen: list[Features] = []
    hook = attention.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    try:
        with torch.no_grad():
            model.eval()(inputs([molecule]))
    finally:
        hook.remove()
    return seen[0]


def _received(attention: EquivariantAttention, x: Features, cls: EquivalenceClass, atom: int | None) -> Tensor:
    """(source entry,): mean attention over heads and over the output entries that have any."""
    with torch.no_grad():
        weights = attention_map(attention, x, cls).mean(0)
    keep = weights.sum(1) > 0
    if atom is not None:
        keep &= (x.target(attention.order_out).entries(cls.target).tuples == atom).any(1)
    return weights[keep].mean(0) if bool(keep.any()) else weights.new_zeros(weights.shape[1])


def _most(shares: Tensor, names: Sequence[str], count: int) -> str:
    order = shares.argsort(descending=True)[:count].tolist()
    return ", ".join(f"{names[n]} {float(shares[n]) * len(shares):.2f}" for n in order)


def _colours(shares: Tensor | None) -> dict[int, tuple[float, ...]]:
    """A colour for each place, after its attention relative to equal shares."""
    if shares is None or len(shares) == 0 or float(shares.max()) <= 0:
        return {}
    return dict(enumerate(contrast_colours((shares * len(shares)).tolist())))
