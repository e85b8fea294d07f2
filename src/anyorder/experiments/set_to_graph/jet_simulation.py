"""Simulate a flavour-balanced sample of jets in chunks that are derived from one seed and never simulated twice."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anyorder.arrays import read_arrays
from anyorder.errors import InputError, reading
from anyorder.experiments.set_to_graph.jet_events import EventSettings, simulate_events
from anyorder.experiments.set_to_graph.jets import FLAVOURS, SPLITS, JetSample, concatenate, write_jets
from anyorder.extras import require
from anyorder.files import write_json

SHARES = {"train": 0.6, "valid": 0.2, "test": 0.2}
PT_EDGES = (40.0, 47.5, 55.0, 65.0, 77.5, 95.0, 120.0, 160.0, 220.0)  # GeV; about a tenth of the jets in each bin
ETA_EDGES = (0.5, 1.0, 1.5, 2.0)
MOST_TRACKS = 100  # jets with as many or more share a bin
NUM_CODES = (len(PT_EDGES) + 1) * (len(ETA_EDGES) + 1) * MOST_TRACKS
PATIENCE = 20_000  # events without one balanced jet before giving up
ARRAYS = ("features", "vertex", "offsets", "flavour")


@dataclass(frozen=True)
class ChunkPlan:
    """What a chunk depends on besides its number; its folder is named after all of it."""

    seed: int
    events: int
    settings: EventSettings
    folder: Path

    def path(self, index: int) -> Path:
        """Where chunk ``index`` is kept."""
        return self.folder / f"{index:06d}.npz"


def simulate(
    num_jets: int,
    *,
    out_dir: str | Path,
    seed: int = 0,
    workers: int = 1,
    settings: EventSettings | None = None,
    chunk_events: int = 1000,
    progress: bool = True,
) -> dict[str, Path]:
    """Write the training, validation and test file of ``num_jets`` simulated jets, a third of each flavour.

    In each bin of jet pT, |eta| and number of tracks every flavour has as many jets, so that only the tracks tell
    flavours apart. The sample depends on the seed, the settings and ``chunk_events``, and not on ``workers``. Chunks
    stay under ``out_dir/chunks``: an interrupted run is resumed where it stopped, and a larger sample reuses them.
    """
    for name, value, least in (("num_jets", num_jets, 5), ("workers", workers, 1), ("chunk_events", chunk_events, 1)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    if seed < 0:
        raise ValueError(f"seed must not be negative, got {seed}")
    require("pythia8mc", "jets")
    out = Path(out_dir)
    plan = _plan(seed, chunk_events, settings or EventSettings(), out)
    codes, flavours = _simulate_enough(num_jets, plan, workers, progress)
    chosen = balanced_choice(np.concatenate(codes), np.concatenate(flavours), num_jets, seed)
    sample = _gather(plan, [len(part) for part in flavours], chosen)
    files = _write_splits(sample, seed, out)
    record = _record(plan) | {"num_jets": num_jets, "events": plan.events * len(codes)}
    write_json(out / "simulation.json", record)
    return files


def balance_code(sample: JetSample) -> NDArray[np.int64]:
    """The bin of each jet in (pT, |eta|, number of tracks), as one number."""
    pt = np.digitize(sample.jet_features[:, 0], PT_EDGES)
    eta = np.digitize(np.abs(sample.jet_features[:, 1]), ETA_EDGES)
    return (pt * (len(ETA_EDGES) + 1) + eta) * MOST_TRACKS + np.minimum(sample.num_tracks, MOST_TRACKS - 1)


def balanced_choice(code: NDArray[np.int64], flavour: NDArray[np.int32], num_jets: int, seed: int) -> NDArray[np.int64]:
    """Jet numbers such that every bin holds each flavour as often, in random order of the triples.

    >>> code, flavour = np.array([1, 1, 1, 1, 2, 2]), np.array([0, 5, 0, 4, 0, 5], dtype=np.int32)
    >>> sorted(balanced_choice(code, flavour, 3, seed=0).tolist())
    [0, 1, 3]
    """
    allowance = _flavour_counts(code, flavour).min(axis=0)
    triples = np.stack([_matched(code, flavour == number, allowance) for number in FLAVOURS], axis=1)
    if triples.size < num_jets:
        raise ValueError(f"{num_jets} balanced jets were asked for, the chunks hold {triples.size}")
    order = np.random.default_rng((seed, 0)).permutation(len(triples))
    return np.asarray(triples[order].ravel()[:num_jets])


def _flavour_counts(code: NDArray[np.int64], flavour: NDArray[np.int32]) -> NDArray[np.int64]:
    """The number of jets of each flavour (row) and bin (column); a bin can give as many as its rarest flavour has."""
    return np.stack([np.bincount(code[flavour == number], minlength=NUM_CODES) for number in FLAVOURS])


def _matched(code: NDArray[np.int64], own: NDArray[np.bool_], allowance: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first ``allowance[bin]`` jets of one flavour in each bin, bin after bin."""
    jets = np.flatnonzero(own)
    jets = jets[np.argsort(code[jets], kind="stable")]
    rank = np.arange(len(jets)) - np.searchsorted(code[jets], code[jets])
    return jets[rank < allowance[code[jets]]]


def _record(plan: ChunkPlan) -> dict[str, object]:
    """Everything the content of a chunk depends on, its number apart."""
    versions = {}
    for package in ("pythia8mc", "fastjet"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "unknown"
    return {"seed": plan.seed, "chunk_events": plan.events, "settings": asdict(plan.settings), "versions": versions}


def _plan(seed: int, events: int, settings: EventSettings, out: Path) -> ChunkPlan:
    plan = ChunkPlan(seed, events, settings, out)
    digest = hashlib.sha256(json.dumps(_record(plan), sort_keys=True).encode()).hexdigest()[:12]
    folder = out / "chunks" / f"seed{seed}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    return ChunkPlan(seed, events, settings, folder)


def _simulate_enough(
    num_jets: int, plan: ChunkPlan, workers: int, progress: bool
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int32]]]:
    """Bins and flavours of the jets of chunks 0, 1, ... up to the first with which the sample can be balanced."""
    bars = require("rich.progress", "jets")
    columns = (bars.TextColumn("simulating jets"), bars.BarColumn(), bars.MofNCompleteColumn())
    counts = np.zeros((len(FLAVOURS), NUM_CODES), dtype=np.int64)
    codes: list[NDArray[np.int64]] = []
    flavours: list[NDArray[np.int32]] = []
    bar = bars.Progress(*columns, bars.TimeElapsedColumn(), bars.TimeRemainingColumn(), disable=not progress)
    with bar, closing(_chunks(plan, workers)) as chunks:
        task = bar.add_task("jets", total=num_jets)
        for chunk in chunks:
            codes.append(balance_code(chunk))
            flavours.append(chunk.flavour)
            counts += _flavour_counts(codes[-1], flavours[-1])
            balanced = len(FLAVOURS) * int(counts.min(axis=0).sum())
            bar.update(task, completed=min(balanced, num_jets))
            if balanced >= num_jets:
                break
            if balanced == 0 and len(codes) * plan.events >= PATIENCE:
                found = dict(zip(FLAVOURS.values(), counts.sum(axis=1).tolist(), strict=True))
                raise ValueError(f"{PATIENCE} events gave no jets that can be balanced, only {found}: see the settings")
    return codes, flavours


def _chunks(plan: ChunkPlan, workers: int) -> Generator[JetSample, None, None]:
    """Chunks 0, 1, 2, ... in order, without end; finished ones are read, the others simulated."""
    if workers == 1:
        index = 0
        while True:
            yield _chunk(plan, index)
            index += 1
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        waiting: list[Future[Path]] = [pool.submit(_chunk_path, plan, index) for index in range(workers)]
        index = 0
        while True:
            waiting[index].result()
            waiting.append(pool.submit(_chunk_path, plan, len(waiting)))
            yield _chunk(plan, index)
            index += 1
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _chunk_path(plan: ChunkPlan, index: int) -> Path:
    _chunk(plan, index)
    return plan.path(index)


def _chunk(plan: ChunkPlan, index: int) -> JetSample:
    """Read a finished chunk, or simulate it and put it in place as a whole."""
    path = plan.path(index)
    try:
        with reading(path, "a chunk of simulated jets"):
            stored = read_arrays(path, needed=ARRAYS, only=True)
            features, vertex, offsets, flavour = (stored[name] for name in ARRAYS)
            return JetSample(features, vertex, offsets, flavour)
    except FileNotFoundError:
        pass
    except InputError:
        path.unlink()  # damaged: its seed brings it back as it was
    sample = simulate_events(plan.events, (plan.seed, index + 1), plan.settings)
    partial = path.with_name(f".{path.stem}.{os.getpid()}.npz")
    try:
        np.savez(partial, **{name: getattr(sample, name) for name in ARRAYS})
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return sample


def _gather(plan: ChunkPlan, sizes: list[int], chosen: NDArray[np.int64]) -> JetSample:
    """The chosen jets, numbered over all chunks, in the order asked for; one chunk is in memory at a time."""
    order = np.argsort(chosen, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    cuts = np.searchsorted(chosen[order], bounds)
    parts = [
        _chunk(plan, index).select(chosen[order][cuts[index] : cuts[index + 1]] - bounds[index])
        for index in range(len(sizes))
    ]
    return concatenate(parts).select(np.argsort(order, kind="stable"))


def _write_splits(sample: JetSample, seed: int, out: Path) -> dict[str, Path]:
    """Cut the sample by ``SHARES`` and shuffle each part."""
    ends = np.round(np.cumsum(list(SHARES.values())) * len(sample)).astype(int)
    rng = np.random.default_rng((seed, 1))
    files = {}
    for name, start, end in zip(SHARES, [0, *ends[:-1]], ends, strict=True):
        files[name] = out / SPLITS[name]
        write_jets(files[name], sample.select(rng.permutation(np.arange(start, end))))
    return files
