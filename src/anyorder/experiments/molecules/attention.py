"""Where a trained model looks: attention of a layer on the atoms and bonds of a molecule, as numbers and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from anyorder.algebra import EquivalenceClass, meaning
from anyorder.experiments.molecules.graphs import read_smiles
from anyorder.experiments.molecules.inputs import MoleculeInputs
from anyorder.experiments.molecules.store import Molecule
from anyorder.extras import require
from anyorder.files import write_bytes
from anyorder.layers import EncoderLayer, EquivariantAttention
from anyorder.layers.attention_maps import attention_map
from anyorder.layouts import Features

LOW, HIGH = (1.0, 1.0, 1.0), (0.93, 0.42, 0.1)  # of the colours: nothing, and the most of the picture


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


def draw(found: MoleculeAttention, path: Path, *, size: tuple[int, int] = (700, 500)) -> Path:
    """Draw the molecule with its attention as the colour of atoms and bonds, into a PNG or SVG file."""
    drawing = require("rdkit.Chem.Draw.rdMolDraw2D", "molecules")
    kinds = {".png": drawing.MolDraw2DCairo, ".svg": drawing.MolDraw2DSVG}
    if path.suffix.lower() not in kinds:
        raise ValueError(f"a picture is a .png or .svg file, got {path.name!r}")
    molecule = read_smiles(found.smiles)
    canvas = kinds[path.suffix.lower()](*size)
    options = canvas.drawOptions()
    options.legendFontSize, options.annotationFontScale, options.fillHighlights = 16, 0.6, True
    options.useBWAtomPalette()
    atoms, bonds = _colours(found.atoms), _colours(found.bonds)
    _note(molecule.GetAtoms(), found.atoms, "atomNote")
    _note(molecule.GetBonds(), found.bonds, "bondNote")
    if found.atom is not None:
        molecule.GetAtomWithIdx(found.atom).SetProp("atomNote", "here")
    drawing.PrepareAndDrawMolecule(
        canvas,
        molecule,
        legend=f"{found.title} (% of the attention)",
        highlightAtoms=[*atoms],
        highlightAtomColors=atoms,
        highlightAtomRadii=dict.fromkeys(atoms, 0.35),
        highlightBonds=[*bonds],
        highlightBondColors=bonds,
    )
    canvas.FinishDrawing()
    text = canvas.GetDrawingText()
    write_bytes(path, text if isinstance(text, bytes) else text.encode())
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
    return ", ".join(f"{names[n]} {100 * float(shares[n]):.1f} %" for n in order)


def _colours(shares: Tensor | None) -> dict[int, tuple[float, ...]]:
    """A colour for each place: white for none, full for the most."""
    if shares is None or len(shares) == 0 or float(shares.max()) <= 0:
        return {}
    scaled = (shares / shares.max()).tolist()
    return {
        n: tuple(low + share * (high - low) for low, high in zip(LOW, HIGH, strict=True)) for n, share in enumerate(scaled)
    }


def _note(places: Any, shares: Tensor | None, name: str) -> None:
    """Write the shares in per cent beside atoms or bonds, unless there are too many to read."""
    if shares is None or len(shares) > 40:
        return
    for place, share in zip(places, shares.tolist(), strict=True):
        if share > 0:
            place.SetProp(name, f"{100 * share:.0f}")
