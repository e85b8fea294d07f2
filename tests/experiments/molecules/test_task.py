"""Molecules as a task: batches and their plans, models, goals, own tables, official folders, predictions."""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from anyorder.algebra import SetPartition
from anyorder.cli import main
from anyorder.experiments import below, find
from anyorder.experiments.molecules.goals import (
    Classification,
    MoleculeShapes,
    Regression,
    classification_metrics,
    regression_metrics,
)
from anyorder.experiments.molecules.models import (
    MoleculeEncoder,
    MoleculeFingerprint,
    MoleculeMessagePassing,
    MoleculeMLP,
    MoleculeModel,
    MoleculeTransformer,
)
from anyorder.experiments.molecules.recipes import MATCHED, MODELS, QUICK
from anyorder.experiments.molecules.store import Molecule
from anyorder.experiments.molecules.task import MoleculeTask, NamedMolecules, OwnMolecules
from anyorder.layers import Softmax
from anyorder.ops.backends import use_backend
from anyorder.training.fit import Job, Machine, execute

SMALL = MoleculeEncoder(2, 16, 2, 4, 2, 4, dropout=0.0)
CONFIGS: dict[str, MoleculeModel] = {
    "ours": SMALL,
    "exact": replace(SMALL, coupling="exact"),
    "softmax": replace(SMALL, kernel=Softmax()),
    "without global": replace(SMALL, classes="without global"),
    "mlp_pi": MoleculeMLP(2, 16, dropout=0.0),
    "transformer": MoleculeTransformer(2, 16, 2, 4, dropout=0.0),
    "gin": MoleculeMessagePassing("gin", layers=2, channels=16),
    "gcn-vn": MoleculeMessagePassing("gcn", virtual_node=True, layers=2, channels=16),
    "fingerprint": MoleculeFingerprint(2, 16, dropout=0.0),
}
ATTENTION = ("ours", "exact", "softmax", "mlp_pi", "transformer")
SHAPES = MoleculeShapes("regression", ("gap",), (5.0,), (2.0,))
SMILES = ["CCO", "C", "[Na+].[Cl-]", "c1ccccc1O", "N[C@@H](C)C(=O)[O-]", "CC#N", "[NH4+]", "OCC=C"]


@pytest.fixture(autouse=True)
def _plain() -> Iterator[None]:
    """No time for compiling kernels, which have tests of their own."""
    with use_backend("reference"):
        yield


def molecules(smiles: list[str] = SMILES) -> list[Molecule]:
    return [Molecule.from_smiles(text, (float(n),), n) for n, text in enumerate(smiles)]


def build(config: MoleculeModel, shapes: MoleculeShapes = SHAPES) -> Any:
    torch.manual_seed(0)
    return config.build(shapes)


def test_atoms_stand_on_the_diagonal_first_and_bonds_off_it_in_their_order() -> None:
    batch = SMALL.inputs(molecules())
    index = batch.index
    assert index is not None and index.num_entries == len(batch.atoms) + len(batch.bonds)
    atoms, bonds = index.entries(SetPartition((0, 0))), index.entries(SetPartition((0, 1)))
    assert atoms.rows is None and bonds.rows is None, "both patterns are read without a copy"
    assert (atoms.start, bonds.start) == (0, len(batch.atoms))
    assert torch.equal(bonds.tuples.T, batch.bond_index)
    embed = build(SMALL).network.embed
    rows = embed(batch).rows
    assert torch.equal(rows[: len(batch.atoms)], embed.atoms(batch.atoms))
    assert torch.equal(rows[len(batch.atoms) :], embed.bonds(batch.bonds))


@pytest.mark.parametrize("name", ATTENTION)
def test_collating_works_out_all_that_a_model_asks_of_the_plan(name: str) -> None:
    batch = pickle.loads(pickle.dumps(CONFIGS[name].inputs(molecules()))).to("cpu")  # as it comes from a loader's worker
    kept = [len(batch.index._cache), *(len(plan._cache) for _, plan in batch.index._plans)]
    build(CONFIGS[name])(batch).sum().backward()
    assert [len(batch.index._cache), *(len(plan._cache) for _, plan in batch.index._plans)] == kept


@pytest.mark.parametrize("name", CONFIGS)
def test_a_molecule_does_not_see_its_neighbours_nor_the_order_of_its_atoms(name: str) -> None:
    config = CONFIGS[name]
    model = build(config).double().eval()
    together = model(config.inputs(molecules()))
    alone = torch.cat([model(config.inputs([each])) for each in molecules()])
    torch.testing.assert_close(together, alone)
    if name != "transformer":  # whose positions have arbitrary signs
        torch.testing.assert_close(model(config.inputs(molecules(["OCC"]))), together[:1])


@pytest.mark.parametrize("name", CONFIGS)
def test_single_atoms_and_ions_train_without_nan(name: str) -> None:
    config, model = CONFIGS[name], build(CONFIGS[name])
    for batch in (config.inputs(molecules()), config.inputs(molecules(["C", "[Na+]", "[Cl-].[K+]"]))):
        model.goal.loss(model(batch), batch.targets).backward()
    assert all(weight.grad is None or bool(weight.grad.isfinite().all()) for weight in model.parameters())


def test_signs_of_positions_are_random_in_training_alone() -> None:
    config, model = CONFIGS["transformer"], build(CONFIGS["transformer"])
    batch = config.inputs(molecules())
    trained = [model(batch) for _ in range(2)]
    assert not torch.equal(*trained)
    model.eval()
    assert torch.equal(model(batch), model(batch))


def test_regression_ignores_missing_targets_and_gives_units_back() -> None:
    goal = Regression(["a", "b"], [1.0, 10.0], [2.0, 5.0])
    out = torch.tensor([[0.0, 0.5], [1.0, -1.0]], requires_grad=True)
    targets = torch.tensor([[2.0, math.nan], [1.0, 10.0]])
    loss = goal.loss(out, targets)
    assert float(loss.detach()) == pytest.approx((0.5 + 1.0 + 1.0) / 3)
    loss.backward()
    assert out.grad is not None and bool(out.grad.isfinite().all()) and out.grad[0, 1] == 0
    metrics = regression_metrics(goal.evaluate(out.detach(), targets), goal.names)
    assert metrics == pytest.approx(
        {"a/MAE": 1.5, "a/RMSE": math.sqrt(2.5), "b/MAE": 5.0, "b/RMSE": 5.0, "scaled MAE": 2.5 / 3}
    )
    assert goal.columns(out.detach()) == {"predicted_a": ["1", "3"], "predicted_b": ["12.5", "5"]}
    nothing = goal.loss(out, torch.full((2, 2), math.nan))
    assert float(nothing.detach()) == 0


def test_classification_of_two_and_of_more_classes() -> None:
    goal = Classification(["toxic", "colour"], [["0", "1"], ["blue", "green", "red"]])
    assert goal.channels_out == 4
    out = torch.tensor([[2.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 3.0], [0.5, 0.0, 1.0, 0.0]])
    targets = torch.tensor([[1.0, 0.0], [0.0, math.nan], [math.nan, 0.0]])
    binary = [math.log1p(math.exp(-2.0)), math.log1p(math.exp(-1.0))]
    many = [-float(out[n, 1:].log_softmax(0)[0]) for n in (0, 2)]
    assert float(goal.loss(out, targets)) == pytest.approx(sum(binary + many) / 4)
    metrics = classification_metrics(goal.evaluate(out, targets), goal.names)
    assert metrics == pytest.approx(
        {"loss": sum(binary + many) / 4, "toxic/accuracy": 1.0, "toxic/AUC": 1.0, "colour/accuracy": 0.5}
    )
    columns = goal.columns(out)
    assert columns["predicted_toxic"] == ["1", "0", "1"] and columns["predicted_colour"] == ["blue", "red", "green"]
    assert float(columns["probability_toxic_1"][0]) == pytest.approx(1 / (1 + math.exp(-2.0)), rel=1e-5)


def test_area_under_the_curve_is_left_out_where_one_class_occurs() -> None:
    goal = Classification(["toxic"], [["no", "yes"]])
    metrics = classification_metrics(goal.evaluate(torch.ones(3, 1), torch.ones(3, 1)), goal.names)
    assert set(metrics) == {"loss", "accuracy"}


def write_csv(path: Path, rows: list[list[Any]], header: list[str] | None = None) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header or ["id", "smiles", "gap"], *rows])
    return path


CHAINS = ["C" * n + end for n in range(1, 9) for end in ("", "O", "N", "F", "C#N")]


def own_table(path: Path) -> Path:
    return write_csv(path, [[n, text, len(text) + 0.5 * text.count("O")] for n, text in enumerate(CHAINS)])


def train(folder: Path, data: Path, *more: str) -> int:
    size = ("--epochs", "2", "--channels", "16", "--layers", "1", "--batch-size", "8", "--quiet", "--accelerator", "cpu")
    place = ("--data", str(data), "--out", str(folder), "--data-dir", str(folder.parent))
    return main(["train", "molecules", *place, *size, *more])


def test_own_table_from_training_to_predictions_in_order_with_bad_rows_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = own_table(tmp_path / "my.csv")
    assert train(tmp_path / "model", data, "--target", "gap") == 0
    out = capsys.readouterr().out
    assert "answer: " in out and "mean" in out and "next: anyorder predict" in out
    record = json.loads((tmp_path / "model" / "record.json").read_text())
    assert set(record["metrics"][""]) == {"MAE", "RMSE"}
    rows = [[n, text] for n, text in enumerate(["CCO", "not smiles", "[Na+].[Cl-]", "", "C"])]
    new = write_csv(tmp_path / "new.csv", rows, ["id", "smiles"])
    assert main(["predict", str(tmp_path / "model"), "--input", str(new)]) == 0
    said = capsys.readouterr().out
    assert "3 predictions" in said and "row 1 (line 3)" in said and "row 3 (line 5)" in said
    with (tmp_path / "new-predictions.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [row["id"] for row in written] == ["0", "1", "2", "3", "4"]
    assert [bool(row["predicted_gap"]) for row in written] == [True, False, True, False, True]
    assert train(tmp_path / "model", data, "--target", "gap") == 1
    assert "already" in capsys.readouterr().err


def test_several_targets_some_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[text, len(text), "" if n % 3 else text.count("C")] for n, text in enumerate(CHAINS)]
    rows.append(["CCCCCCCCCCCC", "nan", ""])
    data = write_csv(tmp_path / "two.csv", rows, ["smiles", "a", "b"])
    assert train(tmp_path / "model", data, "--target", "a", "b") == 1
    assert "row 1 (line 3)" in capsys.readouterr().err
    assert train(tmp_path / "model", data, "--target", "a", "b", "--keep-missing") == 0
    metrics = json.loads((tmp_path / "model" / "record.json").read_text())["metrics"]
    assert "scaled MAE" in metrics[""] and "MAE" in metrics["a"]
    opened = OwnMolecules(str(data), targets=("a", "b"), keep_missing=True).open(tmp_path, progress=False)
    assert sum(map(len, opened.split.values())) == len(CHAINS), "a molecule without any target is left out"


@pytest.mark.parametrize("labels", [("no", "yes"), ("blue", "green", "red")])
def test_classes_by_name(tmp_path: Path, labels: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[text, labels[n % len(labels)]] for n, text in enumerate(CHAINS)]
    data = write_csv(tmp_path / "classes.csv", rows, ["smiles", "kind"])
    assert train(tmp_path / "model", data, "--target", "kind", "--goal", "classification", "--model", "gcn-vn") == 0
    assert "accuracy" in json.loads((tmp_path / "model" / "record.json").read_text())["metrics"][""]
    assert main(["predict", str(tmp_path / "model"), "--input", str(data), "--output", str(tmp_path / "out.csv")]) == 0
    with (tmp_path / "out.csv").open() as file:
        written = list(csv.DictReader(file))
    assert {row["predicted_kind"] for row in written} <= set(labels)
    assert sum(float(written[0][f"probability_kind_{label}"]) for label in labels) == pytest.approx(1, abs=1e-4)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("", [], "is empty"),
        ("smiles,gap\n", [], "no rows"),
        ("molecule,gap\nC,1\n", [], "no column 'smiles'"),
        ("smiles,energy\nC,1\n", [], "no column 'gap'"),
        ("smiles,gap\nC,1\nCC,nan\n", [], "row 1 (line 3)"),
        ("smiles,gap\nC,1\nCC,high\n", [], "row 1 (line 3)"),
        ("smiles,gap\nC,1\nCC\n", [], "row 1 (line 3)"),
        ("smiles,gap\nxx,1\nyy,2\n", [], "none of 2 cells"),
        ("smiles,gap\nC,1\nCC,2\n", [], "is empty: more molecules"),
        ("smiles,gap\nC,1\nCC,1\n", ["--goal", "classification"], "at least two classes"),
        ("smiles,gap\nC,1\nCC,1\n", ["--valid", "0.6", "--test", "0.5"], "together below 1"),
    ],
)
def test_tables_that_cannot_be_learned_from_are_refused_with_the_reason(
    tmp_path: Path, text: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.csv").write_text(text)
    assert train(tmp_path / "model", tmp_path / "bad.csv", "--target", "gap", *arguments) == 1
    assert message in capsys.readouterr().err


def test_large_molecules_are_left_out_with_their_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[n, text, n] for n, text in enumerate([*CHAINS, "C" * 200])]
    data = write_csv(tmp_path / "large.csv", rows)
    assert train(tmp_path / "model", data, "--target", "gap", "--max-atoms", "50", "--model", "gin") == 0
    assert "row 40: 'CCCC" in capsys.readouterr().out


def official_folder(root: Path) -> Path:
    """PCQM4M-LSC as OGB lays it out, of a few molecules."""
    folder = root / "pcqm4m_kddcup2021"
    (folder / "raw").mkdir(parents=True)
    lines = [f"{n},{text},{'' if n >= 36 else 4 + 0.1 * len(text)}" for n, text in enumerate(CHAINS)]
    with gzip.open(folder / "raw" / "data.csv.gz", "wt") as file:
        file.write("\n".join(["idx,smiles,homolumogap", *lines]) + "\n")
    parts = {"train": range(24), "valid": range(24, 36), "test": range(36, 40)}
    torch.save({part: torch.tensor([*rows]).numpy() for part, rows in parts.items()}, folder / "split_dict.pt")
    return folder


def smaller(name: str) -> tuple[str, ...]:
    task = ("task.train_molecules=None", "task.valid_molecules=None", "schedule.epochs=2", "batch_size=8")
    return (*task, "model.layers=1", "model.channels=16") if name != "fingerprint" else task


@pytest.mark.parametrize("row", ["ours-s-phi-small-short", "gin-vn", "transformer-plus-laplacian-pe-short"])
def test_an_official_folder_trains_from_its_recipe(tmp_path: Path, row: str) -> None:
    official_folder(tmp_path)
    job = Job.of(find(f"molecules/pcqm4m-lsc/{row}"), scale="quick", seed=0, overrides=smaller(row))
    record = execute(job, tmp_path / "runs", Machine(progress=False, data_dir=tmp_path, accelerator="cpu"))
    assert set(record.metrics[""]) == {"MAE"} and math.isfinite(record.metrics[""]["MAE"])
    assert record.metrics[""]["MAE"] == pytest.approx(record.history[-1]["MAE"]), "the last state is scored on validation"


@pytest.mark.parametrize("row", ["ours-s-phi-short", "mlp-pi-s-short", "transformer-plus-laplacian-pe-short", "gcn-vn"])
def test_an_interrupted_run_goes_on_to_the_result_it_would_have_had(
    tmp_path: Path, row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    official_folder(tmp_path)
    overrides = (*smaller(row), "model.dropout=0.1")
    job = Job.of(find(f"molecules/pcqm4m-lsc/{row}"), scale="quick", seed=3, overrides=overrides)
    machine = Machine(progress=False, data_dir=tmp_path, accelerator="cpu")
    whole = execute(job, tmp_path / "whole", machine)
    calls, loss = [0], MoleculeTask.loss

    def breaks(self: MoleculeTask, model: Any, batch: Any) -> Tensor:
        calls[0] += 1
        if calls[0] == 5:  # in the second of two epochs of three steps
            raise ConnectionError("power cut")
        return loss(self, model, batch)

    monkeypatch.setattr(MoleculeTask, "loss", breaks)
    with pytest.raises(ConnectionError):
        execute(job, tmp_path / "cut", machine)
    resumed = execute(job, tmp_path / "cut", machine)
    assert resumed.metrics == whole.metrics and resumed.history == whole.history


def test_a_missing_official_folder_says_how_to_get_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "molecules/pcqm4m-lsc/gin", "--data-dir", str(tmp_path), "--out", str(tmp_path), "--quiet"]) == 1
    assert "anyorder data get pcqm4m_kddcup2021" in capsys.readouterr().err


def test_quick_rows_see_the_same_molecules_and_say_what_is_reduced() -> None:
    runs = [recipe.make("quick") for recipe in below("molecules/qm9-gap")]
    assert len(runs) == len(MODELS) + len(MATCHED) == len(QUICK) + len(MATCHED)
    assert len({(run.task, run.schedule, run.batch_size) for run in runs}) == 1 and len({run.reduced for run in runs}) == 2
    assert isinstance(runs[0].task, NamedMolecules) and all(run.reduced for run in runs)
    assert all(not recipe.make("full").reduced for recipe in below("molecules") if "full" in recipe.scales)


def test_matched_rows_have_the_size_in_their_name() -> None:
    for row, (config, _) in MATCHED.items():
        count = sum(weight.numel() for weight in config.network(1).parameters())
        assert abs(count / 1000 / int(row.split(", ")[-1].removesuffix("k")) - 1) < 0.05, (row, count)


def test_protocol_models_have_the_published_sizes() -> None:
    """Millions of parameters: OGB states them for its baselines, the paper's architectures give the others."""
    sizes = {}
    for row, config in MODELS.items():
        with torch.device("meta"):
            sizes[row] = sum(weight.numel() for weight in config.network(1).parameters()) / 1e6
    published = {"MLP-FINGERPRINT": 16.1, "GCN": 2.0, "GIN": 3.8, "GCN-VN": 4.9, "GIN-VN": 6.7}
    assert {row: round(sizes[row], 1) for row in published} == published
    assert sizes["Ours (S, phi)"] > 2 * sizes["Ours (S, phi)_SMALL"]


def test_limits_take_the_same_molecules_every_time(tmp_path: Path) -> None:
    from anyorder.experiments.molecules.parts import limited

    opened = OwnMolecules(str(own_table(tmp_path / "my.csv")), targets=("gap",)).open(tmp_path, progress=False)
    few, more = (limited(opened, {"train": count}, "own").split["train"].tolist() for count in (10, 20))
    assert len(few) == 10 and set(few) < set(more) < set(opened.split["train"].tolist())
    with pytest.raises(ValueError, match="cannot take 33"):
        limited(opened, {"train": 33}, "own")


@pytest.mark.slow
def test_two_processes_give_the_metrics_of_one_at_the_same_global_batch(tmp_path: Path) -> None:
    data = own_table(tmp_path / "my.csv")
    found: list[Tensor] = []
    for devices in ("1", "2"):
        size = ("--epochs", "2", "--channels", "16", "--layers", "1", "--batch-size", "8", "--dropout", "0")
        place = ("--devices", devices, "--accelerator", "cpu", "--quiet", "--data-dir", str(tmp_path))
        command = ["train", "molecules", "--data", str(data), "--target", "gap", "--out", str(tmp_path / devices)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "ANYORDER_BACKEND": "reference"}
        subprocess.run([sys.executable, "-m", "anyorder", *command, *size, *place], check=True, env=environment, timeout=300)
        record = json.loads((tmp_path / devices / "record.json").read_text())
        history = [value for entry in record["history"] for key, value in entry.items() if key in ("MAE", "RMSE")]
        found.append(torch.tensor([*record["metrics"][""].values(), *history]))
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)


def test_the_seed_draws_the_parts_of_an_own_table(tmp_path: Path) -> None:
    task = OwnMolecules(str(own_table(tmp_path / "my.csv")), targets=("gap",))
    parts = [task.open(tmp_path, seed=seed, progress=False).split for seed in (0, 0, 7)]
    assert parts[0]["test"].tolist() == parts[1]["test"].tolist() != parts[2]["test"].tolist()


def test_a_quote_that_does_not_close_is_refused_by_line(tmp_path: Path) -> None:
    data = tmp_path / "open.csv"
    data.write_text("smiles,gap,note\n" + "".join(f"{'C' * (n + 1)},{n},{chr(34) * (n == 20)}x\n" for n in range(40)))
    with pytest.raises(ValueError, match=r"open\.csv, line "):
        OwnMolecules(str(data), targets=("gap",)).open(tmp_path, progress=False)


def test_columns_of_probabilities_must_differ() -> None:
    with pytest.raises(ValueError, match="two targets would write the column 'probability_a_b_c'"):
        Classification(("a", "a_b"), (("b_c", "d"), ("c", "e")))


def test_without_a_test_part_all_molecules_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = own_table(tmp_path / "my.csv")
    assert train(tmp_path / "model", data, "--target", "gap", "--test", "0") == 0
    assert "validation  " in capsys.readouterr().out
    assert {"forest.npz", "beside.json", "model.safetensors"} <= {path.name for path in (tmp_path / "model").iterdir()}
    assert main(["predict", str(tmp_path / "model"), "--input", str(data), "--output", str(tmp_path / "out.csv")]) == 0


def test_a_damaged_forest_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = own_table(tmp_path / "my.csv")
    assert train(tmp_path / "model", data, "--target", "gap") == 0
    (tmp_path / "model" / "forest.npz").write_bytes(b"PK\3\4 nothing")
    assert main(["predict", str(tmp_path / "model"), "--input", str(data)]) == 1
    assert "forest.npz" in capsys.readouterr().err
