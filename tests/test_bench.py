"""Measurements: graphs, clocks, memory, processes of their own, matrix products, exponents and the command line."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from itertools import groupby

import pytest
import torch

from anyorder import EncoderLayer, Features, RandomFeatures, Softmax
from anyorder.bench import barabasi_albert, executed_products, isolated, measure, peak_memory, planning, time_products
from anyorder.bench.fits import curves, draw, exponent, table
from anyorder.bench.isolation import ProcessOutcome
from anyorder.bench.layer import compare, list_products, report
from anyorder.bench.measure import Timing, alternate
from anyorder.bench.models import MODELS, HigherOrder, find_models
from anyorder.bench.products import Product
from anyorder.bench.scaling import Case, Limits, Row, Sample, read_rows, run_case, run_scaling, summarise, write_rows
from anyorder.cli import main
from anyorder.errors import InputError


class TestGraphs:
    @pytest.mark.parametrize("edges", [10, 100, 1_003])
    def test_has_the_next_possible_number_of_edges_both_ways_and_every_loop(self, edges):
        graph = barabasi_albert(edges, seed=1)
        pairs = {tuple(pair) for pair in graph.tuples.tolist()}
        assert len(pairs) == graph.num_entries
        assert pairs == {(b, a) for a, b in pairs}
        assert {(node, node) for node in range(graph.num_nodes)} <= pairs
        assert edges <= graph.num_entries - graph.num_nodes < edges + 10

    def test_every_new_node_has_five_links_to_older_ones(self):
        graph = barabasi_albert(500)
        older = graph.tuples[graph.tuples[:, 0] > graph.tuples[:, 1], 0]
        assert (torch.bincount(older, minlength=graph.num_nodes)[6:] == 5).all()

    def test_old_nodes_have_most_links(self):
        graph = barabasi_albert(20_000)
        degree = torch.bincount(graph.tuples[:, 0])
        assert degree[:20].float().mean() > 5 * degree.float().mean()

    def test_is_the_seeds(self):
        assert torch.equal(barabasi_albert(200, seed=3).tuples, barabasi_albert(200, seed=3).tuples)
        assert not torch.equal(barabasi_albert(200, seed=3).tuples, barabasi_albert(200, seed=4).tuples)

    def test_too_few_edges_are_refused(self):
        with pytest.raises(ValueError, match="at least 10 directed edges, got 4"):
            barabasi_albert(4)


class OwnClock:
    """Time that passes when a test says so, however busy the machine is."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def perf_counter(self) -> float:
        return self.wall

    def process_time(self) -> float:
        return self.cpu

    def sleep(self, seconds: float) -> None:
        self.wall += seconds

    def work(self, seconds: float) -> None:
        self.wall, self.cpu = self.wall + seconds, self.cpu + seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> OwnClock:
    own = OwnClock()
    monkeypatch.setattr(sys.modules[Timing.__module__], "time", own)
    return own


class TestMeasure:
    def test_sleeping_takes_wall_time_and_little_cpu_time(self):
        found = measure(lambda: time.sleep(0.05), repeats=2)
        assert found.wall >= 0.05 > 2 * found.cpu

    def test_the_first_call_does_not_count(self, clock):
        waits = [0.5, 0.25, 0.25, 0.0, 0.25, 0.0]
        assert measure(lambda: clock.sleep(waits.pop(0)), repeats=5) == Timing(0.25, 0.0, 5)

    def test_calls_that_are_compared_take_turns(self, clock):
        calls = []
        works = [lambda: (calls.append("a"), clock.work(0.001)), lambda: (calls.append("b"), clock.sleep(0.06))]
        fast, slow = alternate(works, rounds=2, budget=0.1)
        turns = [name for name, _ in groupby(calls[2:])]  # after one of each to warm up
        assert turns == ["a", "b", "a", "b"]
        assert (fast.repeats, slow.repeats) == (40, 2)
        assert (fast.wall, fast.cpu) == (pytest.approx(0.001), pytest.approx(0.001))
        assert (slow.wall, slow.cpu) == (pytest.approx(0.06), 0.0)

    def test_peak_memory_sees_what_was_freed_again(self):
        outcome = isolated(peaks, 10_000_000)
        assert outcome.status == "ok"
        large, small = zip(*outcome.results, strict=True)
        # The system may take back pages of the process at any moment, so that one try can see too little.
        assert 35e6 < max(large) < 60e6
        assert min(small) < 20e6

    def test_a_plan_is_timed_once(self):
        work = HigherOrder("sparse", RandomFeatures()).on(barabasi_albert(300))
        with planning() as first:
            work.forward()
        with planning() as second:
            work.forward()
        assert first.wall > 0 and first.cpu > 0
        assert (second.wall, second.cpu) == (0, 0)

    def test_planning_leaves_the_layouts_as_they_were(self):
        from anyorder.layouts import IndexSet, Plan

        before = Plan._once, IndexSet._once
        with planning():
            assert Plan._once is not before[0]
        assert (Plan._once, IndexSet._once) == before


def count(number):
    for n in range(number):
        yield n, os.getpid()


def peaks(numbers):
    for _ in range(5):
        with peak_memory() as large:
            torch.ones(numbers)
        with peak_memory() as small:
            torch.ones(10)
        yield large.bytes, small.bytes


def fill(gigabytes):
    yield "started"
    yield len(torch.ones(int(gigabytes * 2**28)))


def sleep(seconds):
    yield "started"
    time.sleep(seconds)


def fail(text):
    yield "started"
    raise KeyError(text)


@pytest.mark.slow
class TestIsolation:
    """Each starts a process that imports torch."""

    def test_results_come_from_another_process(self):
        found = isolated(count, 3)
        assert found.status == "ok"
        assert [n for n, _ in found.results] == [0, 1, 2]
        assert os.getpid() not in {process for _, process in found.results}

    def test_memory_is_limited(self):
        found = isolated(fill, 2.0, memory_limit=0.5)
        assert (found.status, found.results) == ("out of memory", ("started",))
        assert isolated(fill, 0.1, memory_limit=0.5).status == "ok"

    def test_time_is_limited(self):
        found = isolated(sleep, 300, time_limit=20)
        assert found.status == "out of time"

    def test_an_error_is_told(self):
        found = isolated(fail, "what was wrong")
        assert (found.status, found.results) == ("failed", ("started",))
        assert "what was wrong" in found.message


class TestProducts:
    def test_finds_products_of_every_form_and_of_the_backward_pass(self):
        a, b, bias = torch.randn(6, 5), torch.randn(5, 4, requires_grad=True), torch.randn(4)
        found = executed_products(lambda: torch.addmm(bias, a, b).sum().backward())
        assert found == Counter({Product(6, 5, 4, added=True): 1, Product(5, 6, 4, turned=(True, False)): 1})
        batched = executed_products(lambda: torch.ones(3, 6, 5) @ torch.ones(3, 5, 4))
        assert batched == Counter({Product(6, 5, 4, batch=3): 1})

    def test_softmax_stands_for_two_products_and_five_backward(self):
        q = torch.randn(2, 3, 7, 8, requires_grad=True)
        attention = torch.nn.functional.scaled_dot_product_attention
        found = executed_products(lambda: attention(q, q, q).sum().backward())
        assert sum(found.values()) == 7
        assert {product.inside for product in found} == {"softmax"}
        assert sum(n * p.operations for p, n in found.items()) == 7 * 2 * 6 * 7 * 7 * 8

    def test_kernel_attention_stands_for_the_products_of_features_and_states(self, monkeypatch):
        monkeypatch.setattr("anyorder.ops.segment.PAYS", -1)  # as for large inputs
        monkeypatch.setattr("anyorder.ops.segment.SMALL", -1)
        layer, x = _layer(RandomFeatures())
        with torch.no_grad():
            found = executed_products(lambda: layer(x))
        inside = {product for product in found if product.inside == "segments"}
        edges = x.index.num_entries - x.num_nodes
        assert any((p.rows, p.inner, p.columns) == (edges * 2, 8, 16) for p in inside)  # two heads of width 8

    @pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
    def test_factors_lie_in_memory_as_they_did(self, turned):
        product = Product(6, 5, 4, turned=turned)
        left, right = product.factors()
        assert (left @ right).shape == (6, 4)
        assert (left.is_contiguous(), right.is_contiguous()) == (not turned[0], not turned[1])

    def test_time_adds_up(self):
        one = Product(256, 256, 256)
        once, often = (time_products(Counter({one: n}), budget=0.05) for n in (1, 1000))
        assert often > 20 * once > 0  # 1000 times on a machine that stays as busy as it is

    def test_compare_counts_what_ran(self):
        a = torch.randn(64, 64)
        found = compare("two products", lambda: a @ a @ a, repeats=3)
        assert found.products == Counter({Product(64, 64, 64): 2})
        assert (found.inside, found.ratio) == (0, found.ratio_with_inside)
        assert "two products" in report([found])
        assert "64 x 64 x 64" in list_products(found.products)

    def test_work_without_products_has_nothing_to_compare_with(self):
        with pytest.raises(ValueError, match="no matrix products"):
            compare("nothing", lambda: None, repeats=1)


def _layer(kernel):
    index = barabasi_albert(60)
    layer = EncoderLayer(order_in=2, order_out=2, channels=8, heads=2, head_channels=8, kernel=kernel)
    return layer, Features(index, torch.randn(index.num_entries, 8))


class TestModels:
    @pytest.mark.parametrize("name", MODELS)
    def test_each_takes_a_step_and_gives_a_vector(self, name):
        work = MODELS[name].on(barabasi_albert(60))
        assert work.run().shape == (1, 32)
        work.forward()
        assert all(p.grad is None for p in work.model.parameters())
        work.step()
        assert any(p.grad is not None and bool(p.grad.any()) for p in work.model.parameters())

    def test_dense_and_sparse_agree_on_a_complete_graph(self):
        graph = barabasi_albert(10)  # a star of 6 nodes
        every = torch.cartesian_prod(torch.arange(6), torch.arange(6))
        from anyorder import SparseIndexSet

        complete = SparseIndexSet(every, num_nodes=graph.num_nodes)
        sparse, dense = (HigherOrder(layout, Softmax()) for layout in ("sparse", "dense"))
        model = sparse.build()
        results = []
        for contender in (sparse, dense):
            torch.manual_seed(0)
            results.append(contender.on(complete, model).run())
        torch.testing.assert_close(*results)

    def test_unknown_models_are_named(self):
        with pytest.raises(ValueError, match="no model is called 'transformer'"):
            find_models(["transformer"])
        with pytest.raises(ValueError, match="several models begin with 'ours'"):
            find_models(["ours"])


def rows():
    """A model in m^1 and m^2, and one that stops."""
    made = []
    for edges in (1_000, 10_000, 100_000):
        seconds = {"forward_seconds": edges * 1e-6, "forward_cpu_seconds": edges * 2e-6, "plan_seconds": 1e-4}
        made.append(Row("GCN", edges, "ok", 1, 1, 10, 20, plan_cpu_seconds=1e-4, forward_bytes=edges**2, **seconds))
    made.append(Row("Ours (D)", 1_000, "ok", 1, 1, 10, 20, 0.1, 0.1, 1.0, 2.0, 10**6))
    made.append(Row("Ours (D)", 10_000, "out of memory", 0, 1, message="no room, and a comma"))
    made.append(Row("Ours (D)", 100_000, "not tried"))
    return made


class TestFits:
    def test_exponents_of_time_and_memory(self):
        found = {curve.model: curve for curve in curves(rows(), "forward_seconds")}
        assert found["GCN"].exponent == pytest.approx(1)
        assert found["Ours (D)"].exponent is None
        assert (found["GCN"].stop, found["Ours (D)"].stop) == ("", "out of memory")
        assert curves(rows(), "forward_bytes")[0].exponent == pytest.approx(2)

    def test_small_graphs_do_not_count_where_large_ones_are_known(self):
        edges = (100, 1_000, 10_000, 100_000)
        made = [Row("GCN", n, "ok", forward_seconds=max(n, 10_000) * 1e-6) for n in edges]
        assert curves(made, "forward_seconds")[0].exponent == pytest.approx(1)
        assert curves(made[:3], "forward_seconds")[0].exponent == pytest.approx(0)

    def test_one_size_has_no_exponent(self):
        with pytest.raises(ValueError, match="at least two sizes"):
            exponent([10], [1])

    def test_the_table_says_where_models_stop(self):
        text = table(rows(), "cpu")
        line = next(line for line in text.splitlines() if line.startswith("Ours (D)"))
        assert line.endswith("out of memory")
        assert "m^1.00" in text and "m^2.00" in text

    def test_the_figure_is_drawn(self, tmp_path):
        assert draw(rows(), tmp_path / "deep" / "figure.png").stat().st_size > 10_000

    def test_rows_survive_the_file(self, tmp_path):
        write_rows(tmp_path / "rows.csv", rows())
        assert read_rows(tmp_path / "rows.csv") == rows()

    def test_other_files_are_refused(self, tmp_path):
        (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
        with pytest.raises(InputError, match="expected the columns"):
            read_rows(tmp_path / "rows.csv")
        write_rows(tmp_path / "rows.csv", rows())
        (tmp_path / "rows.csv").write_bytes((tmp_path / "rows.csv").read_bytes().replace(b",ok,", b",ok,x"))
        with pytest.raises(InputError, match=r"rows\.csv.*invalid literal"):
            read_rows(tmp_path / "rows.csv")


class TestScaling:
    def test_a_case_is_measured(self):
        row = run_case(Case("MLP_pi (S)", 100, seeds=2), Limits(threads=1))
        assert (row.status, row.seeds, row.nodes, row.entries) == ("ok", 2, 15, 115)
        assert row.forward_seconds > 0 and row.step_seconds > 0
        assert row.step_bytes is not None and row.forward_bytes is not None

    def test_medians_over_seeds_and_the_most_memory(self):
        samples = tuple(Sample(5, 9, t, t, Timing(t, 2 * t, 3), int(100 * t)) for t in (1.0, 5.0, 2.0))
        row = summarise(Case("GCN", 10, seeds=4), ProcessOutcome("out of time", samples), 1)
        assert (row.forward_seconds, row.forward_cpu_seconds, row.forward_bytes) == (2.0, 4.0, 500)
        assert (row.status, row.seeds, row.step_seconds) == ("out of time", 3, None)

    def test_a_model_that_stopped_is_not_tried_again(self, tmp_path, monkeypatch):
        tried = []

        def run_case(case, limits):
            tried.append((case.model, case.edges))
            status = "out of memory" if case.model == "Ours (D)" and case.edges >= 100 else "ok"
            return Row(case.model, case.edges, status, threads=limits.threads)

        monkeypatch.setattr("anyorder.bench.scaling.run_case", run_case)
        cases = [Case(model, edges) for model in ("Ours (D)", "GCN") for edges in (1_000, 10, 100)]
        made = run_scaling(cases, Limits(), tmp_path, quiet=True)
        assert tried == [("Ours (D)", 10), ("GCN", 10), ("Ours (D)", 100), ("GCN", 100), ("GCN", 1_000)]
        last = next(row for row in made if (row.model, row.edges) == ("Ours (D)", 1_000))
        assert (last.status, last.message) == ("not tried", "out of memory at 100 edges")
        tried.clear()
        assert run_scaling(cases, Limits(), tmp_path, quiet=True) == made
        assert tried == []

    def test_nothing_is_kept_between_workloads(self):
        graph = barabasi_albert(100)
        MODELS["Ours (S, phi)"].on(graph).forward()
        assert not graph._plans


class TestCommands:
    def test_layer(self, capsys):
        assert main(["bench", "layer", "--channels", "8", "--edges", "60", "--heads", "1", "--step"]) == 0
        text = capsys.readouterr().out
        assert "60 directed edges" in text and "training step" in text and "ratio" in text

    @pytest.mark.slow
    def test_scaling(self, tmp_path, capsys):
        arguments = ["--sizes", "20", "60", "--models", "gcn", "ours(s,phi)", "--seeds", "1", "--quiet", "--no-step"]
        assert main(["bench", "scaling", *arguments, "--out", str(tmp_path)]) == 0
        found = read_rows(tmp_path / "scaling.csv")
        assert [(row.model, row.edges, row.status) for row in found] == [
            ("GCN", 20, "ok"),
            ("Ours (S, phi)", 20, "ok"),
            ("GCN", 60, "ok"),
            ("Ours (S, phi)", 60, "ok"),
        ]
        assert (tmp_path / "scaling.png").exists()
        assert "Ours (S, phi)" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["scaling", "--sizes", "3"], "at least 10 directed edges"),
            (["scaling", "--seeds", "0"], "--seeds must be positive, got 0"),
            (["scaling", "--models", "bert"], "no model is called 'bert'"),
            (["layer", "--head-channels", "0"], "--head-channels must be positive"),
        ],
    )
    def test_wrong_arguments_are_told(self, arguments, message, capsys, tmp_path):
        out = ["--out", str(tmp_path)] if arguments[0] == "scaling" else []
        assert main(["bench", *arguments, *out]) == 1
        assert message in capsys.readouterr().err
