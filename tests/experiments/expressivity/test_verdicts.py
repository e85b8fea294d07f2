"""Verdicts: T^2, training and random weights agree, what does not fit, records that go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from anyorder.errors import InputError
from anyorder.experiments import find, find_table
from anyorder.experiments.expressivity.models import OrderMLP, WholeGraphModel
from anyorder.experiments.expressivity.pairs import GROUPS, Pair, brec, skip_links, sr25
from anyorder.experiments.expressivity.picture import draw_orders
from anyorder.experiments.expressivity.recipes import MODELS, RECIPES
from anyorder.experiments.expressivity.task import VERDICTS, make_record, read_verdicts
from anyorder.experiments.expressivity.verdicts import THRESHOLD, WIDTH, Judge, Verdict, hotelling, judge_exactly
from anyorder.layouts import ConnectedTuples, DistinctTuples, TuplesWithin
from anyorder.layouts.hops import TooManyTuples
from anyorder.training.config import from_data, to_data
from anyorder.training.fit import execute
from anyorder.training.jobs import Job
from anyorder.training.machine import Machine
from anyorder.training.records import RECORD, Record
from anyorder.training.tables import render
from data_folder import DATA

needs_brec = pytest.mark.skipif(not (DATA / "brec").is_dir(), reason=f"the pairs of BREC are not in {DATA}")


def test_t_squared_is_the_statistic_of_the_textbook() -> None:
    rows = torch.randn(32, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.3
    mean, covariance = rows.numpy().mean(0), np.cov(rows.numpy().T)
    assert hotelling(rows) == pytest.approx(32 * mean @ np.linalg.inv(covariance) @ mean, rel=1e-5)


def test_the_threshold_is_that_of_the_f_distribution() -> None:
    assert pytest.approx(31 * WIDTH / (32 - WIDTH) * stats.f.ppf(0.95, WIDTH, 32 - WIDTH), rel=1e-3) == THRESHOLD


@pytest.mark.parametrize(("order", "apart"), [(2, False), (3, True)])
def test_training_and_random_weights_agree(order: int, apart: bool) -> None:
    pair = Pair("", 0, skip_links(9, 2), skip_links(9, 3))
    model = OrderMLP(order=order, layers=3, channels=8)
    trained = Judge(train=True, epochs=10).judge(model, pair, seed=0)
    random = Judge().judge(replace(model, frequency=30.0), pair, seed=0)
    assert (trained.how, random.how) == ("trained", "random weights")
    assert (trained.apart, random.apart) == (apart, apart)
    assert trained.reliable
    assert random.reliable


def test_a_pair_with_too_many_tuples_is_listed_and_fewer_tuples_are_tried() -> None:
    pair = Pair("", 0, skip_links(13, 2), skip_links(13, 3))
    verdict = Judge(most_tuples=1000).judge(OrderMLP(order=3), pair, seed=0)
    assert (verdict.how, verdict.apart, verdict.tuples) == ("does not fit", False, 13 * 12 * 11)
    fewer = OrderMLP(order=3, tuples=DistinctTuples(), otherwise=(ConnectedTuples(),), frequency=30.0)
    verdict = Judge(most_tuples=1000).judge(fewer, pair, seed=0)
    assert verdict.how == "random weights"
    assert verdict.tuples < 1000


def test_a_pair_of_which_no_tuple_is_left_is_not_judged() -> None:
    pair = Pair("", 0, skip_links(13, 3), skip_links(13, 5))  # without a triangle
    cliques = OrderMLP(order=3, otherwise=(TuplesWithin(1),), frequency=30.0)
    verdict = Judge(most_tuples=1000).judge(cliques, pair, seed=0)
    assert (verdict.how, verdict.tuples) == ("does not fit", 13 * 12 * 11)


def test_judges_need_enough_copies() -> None:
    with pytest.raises(ValueError, match="more than 16 copies"):
        Judge(copies=16)


def test_recipes_are_values_that_can_be_written_and_read() -> None:
    for recipe in RECIPES:
        for scale in ("quick", "full"):
            run = recipe.make(scale)  # type: ignore[arg-type]
            assert from_data(to_data(run)) == run
    assert find("expressivity/brec/ours-phi-order-3").row == "Ours (phi, order 3)"


def test_a_run_goes_on_and_ends_in_a_table(tmp_path: Path) -> None:
    job = Job.of(find("expressivity/csl/mlp-pi-order-2"), scale="quick", seed=0)
    unfinished = execute(job, tmp_path, Machine(minutes=1e-9))
    assert unfinished.unfinished == "0 of 45 pairs"
    record = execute(job, tmp_path)
    assert (record.metrics[""]["pairs"], record.metrics[""]["judged"], record.unfinished) == (0.0, 45.0, "")
    kept = read_verdicts(job.folder(tmp_path) / VERDICTS)
    assert len(kept) == 45
    assert all(verdict.reliable and not verdict.apart for verdict in kept)
    assert execute(job, tmp_path) == record
    assert "MLP_pi (order 2)" in render(find_table("expressivity"), [record], form="text", scale=None)


def test_what_was_judged_is_in_the_record_when_a_pair_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job.of(find("expressivity/csl/mlp-pi-order-2"), scale="quick", seed=0)
    judge = Judge.judge

    def until_the_third(self: Judge, model: WholeGraphModel, pair: Pair, seed: int) -> Verdict:
        if pair.number == 3:
            raise TooManyTuples("no memory is left")
        return judge(self, model, pair, seed)

    monkeypatch.setattr(Judge, "judge", until_the_third)
    with pytest.raises(TooManyTuples):
        execute(job, tmp_path)
    assert Record.read(job.folder(tmp_path) / RECORD).unfinished == "3 of 45 pairs"
    monkeypatch.undo()
    assert execute(job, tmp_path).metrics[""]["judged"] == 45.0


def test_half_a_verdict_of_a_killed_run_is_made_again(tmp_path: Path) -> None:
    job = Job.of(find("expressivity/csl/mlp-pi-order-2"), scale="quick", seed=0)
    whole = execute(job, tmp_path)
    folder = job.folder(tmp_path)
    lines = (folder / VERDICTS).read_text().splitlines(keepends=True)
    (folder / VERDICTS).write_text("".join(lines[:-3]) + lines[-3][:20])
    (folder / RECORD).unlink()
    again = execute(job, tmp_path)
    assert again.metrics[""]["judged"] == whole.metrics[""]["judged"] == 45.0
    assert len(read_verdicts(folder / VERDICTS)) == 45


@pytest.mark.parametrize("line", ["{}", "[]", "[" * 5000, '{"group": 1}', "x", "null"])
def test_what_is_no_verdict_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "v.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=r"v\.jsonl"):
        read_verdicts(tmp_path / "v.jsonl")
    known = {"group": "a", "number": 0, "nodes": 5, "tuples": 25, "how": "trained", "apart": True, "reliable": True}
    good = {**known, "statistic": 1.0, "check": 0.0, "seconds": 1.0}
    assert Verdict.from_data(good).to_data() == good
    for name, value in (("number", -1), ("how", "guessed"), ("apart", 1), ("seconds", "x"), ("nodes", True)):
        with pytest.raises(InputError, match="expected a verdict"):
            Verdict.from_data({**good, name: value})


@needs_brec
def test_brec_is_what_it_says() -> None:
    pairs = brec(data_dir=DATA)
    assert len(pairs) == 400
    assert {group: sum(pair.group == group for pair in pairs) for group in GROUPS} == {g: n for g, (_, n) in GROUPS.items()}
    assert len(sr25(data_dir=DATA)) == 91


@needs_brec
@pytest.mark.parametrize("group", GROUPS)
def test_models_agree_with_refinement_pair_by_pair(group: str) -> None:
    """The smallest pairs of each group, at orders 2 and 3."""
    pairs = sorted(brec(data_dir=DATA, groups=(group,)), key=lambda pair: pair.num_nodes)[:2]
    for order in (2, 3):
        model = MODELS[f"MLP_pi (order {order})"]
        assert isinstance(model, WholeGraphModel)
        for pair in pairs:
            verdict, exact = Judge().judge(model, pair, seed=0), judge_exactly(pair, order)
            assert verdict.reliable
            assert exact.reliable
            assert verdict.apart == exact.apart


def test_the_picture_is_drawn_from_records(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    verdict = judge_exactly(Pair("basic", 0, skip_links(9, 2), skip_links(9, 3)), 3)
    job = Job.of(find("expressivity/brec/3-wl"), scale="quick", seed=0)
    record = make_record(job, [verdict], 400)
    assert (record.metrics["basic"]["pairs"], record.metrics["CFI"]["judged"]) == (1.0, 0.0)
    assert record.unfinished == "1 of 400 pairs"
    assert draw_orders([record], tmp_path / "orders.png").stat().st_size > 5000
    with pytest.raises(InputError, match="there are no records of BREC"):
        draw_orders([], tmp_path / "orders.png")
    with pytest.raises(InputError, match="expected a file name that ends in"):
        draw_orders([record], tmp_path / "orders.txt")
