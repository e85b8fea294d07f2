"""A table of SMILES to a store of graphs: in parallel, in constant memory, resumable, every file checked."""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from anyorder.errors import InputError
from anyorder.experiments.molecules.graphs import FlatMolecules, SmilesRow, convert_rows
from anyorder.experiments.molecules.sources import MoleculeTable
from anyorder.experiments.molecules.store import (
    FORMAT,
    MANIFEST,
    Manifest,
    MoleculeStore,
    Shard,
    shard_json,
    write_json,
    write_shard,
)
from anyorder.extras import require
from anyorder.files import read_json

logger = logging.getLogger(__name__)

CHUNK_ROWS = 512  # what a worker gets at a time
Convert = Callable[[list[SmilesRow]], FlatMolecules]
Advance = Callable[[int], None]


@dataclass(frozen=True)
class BuildOptions:
    """How a table becomes a store.

    ``shard_rows`` table rows make a shard (what an interrupted build does again at most); ``fingerprints`` also keeps
    the 2048 Morgan bits, 256 bytes each; molecules above ``max_atoms`` are listed as unreadable; ``workers=0`` stays in
    this process.
    """

    workers: int | None = None
    shard_rows: int = 65_536
    fingerprints: bool = True
    max_atoms: int | None = None

    def __post_init__(self) -> None:
        if self.shard_rows < 1 or (self.workers is not None and self.workers < 0):
            raise ValueError(f"shard_rows must be positive and workers not negative, got {self}")


def build_store(
    table: MoleculeTable,
    folder: Path,
    options: BuildOptions | None = None,
    *,
    verify: bool = True,
    overwrite: bool = False,
    progress: bool = True,
) -> MoleculeStore:
    """The store of a table in ``folder``: opened when it is there, continued when cut short, built when not.

    ``verify`` compares every file with its checksum, and damaged shards are built again; ``overwrite`` replaces a store
    that was made from something else, which is otherwise refused.
    """
    options = options or BuildOptions()
    if not table.path.is_file():
        raise FileNotFoundError(f"there is no table {table.path}")
    job = _job(table, options)
    if _finished(folder, job, verify):
        return MoleculeStore(folder, verify=False)
    folder.mkdir(parents=True, exist_ok=True)
    with _only_builder(folder):
        if _finished(folder, job, verify):  # by another process, while this one waited
            return MoleculeStore(folder, verify=False)
        _claim(folder, job, overwrite)
        (folder / MANIFEST).unlink(missing_ok=True)
        num_rows = table.count()
        shards = _good_shards(folder, num_rows, options.shard_rows)
        if shards:
            _refuse_nothing(table, shards.values())
        with _bar(table.path.name, num_rows, progress) as advance:
            for number, shard in _new_shards(table, folder, options, set(shards), advance):
                shards[number] = shard
                _refuse_nothing(table, shards.values())
        manifest = Manifest(job, num_rows, tuple(shards[number] for number in sorted(shards)))
        manifest.write(folder)
    if manifest.unreadable:
        message = "%d of %d rows of %s gave no molecule; %s lists them with the reasons"
        logger.warning(message, len(manifest.unreadable), num_rows, table.path, folder / MANIFEST)
    return MoleculeStore(folder, verify=False)


def _job(table: MoleculeTable, options: BuildOptions) -> dict[str, Any]:
    """Everything that decides the bytes of a store."""
    kept = {"shard_rows": options.shard_rows, "fingerprints": options.fingerprints, "max_atoms": options.max_atoms}
    rdkit = require("rdkit", "molecules").__version__
    return {"format": FORMAT, "source": table.describe(), **kept, "rdkit": rdkit}


def _claim(folder: Path, job: dict[str, Any], overwrite: bool) -> None:
    """Make the folder ours: empty, or with what the same job left there."""
    path = folder / "job.json"
    there = read_json(path) if path.is_file() else None
    if there == job:
        return
    if there is None and any(file.name != ".lock" and file.suffix != ".tmp" for file in folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty and holds no molecule store: name another folder")
    if there is not None:
        differing = sorted(key for key in job if there.get(key) != job[key])
        if not overwrite:
            raise FileExistsError(
                f"{folder} holds the store of another job (differing in {', '.join(differing)}): "
                "name another folder or ask to overwrite it"
            )
        for file in (*folder.glob("shard-*"), folder / MANIFEST):
            file.unlink(missing_ok=True)
    write_json(path, job)


def _finished(folder: Path, job: dict[str, Any], verify: bool) -> bool:
    """Whether the folder holds a complete store with what the job asks for, however it was cut into shards."""
    if not (folder / MANIFEST).is_file():
        return False
    try:
        manifest = Manifest.read(folder)
    except ValueError:  # damaged: made again from the shards that are good
        return False
    same = all(manifest.job.get(key, "") == job[key] for key in ("format", "source", "max_atoms"))
    enough = manifest.job.get("fingerprints") is True or not job["fingerprints"]
    return same and enough and all(shard.problem(folder, checksums=verify) is None for shard in manifest.shards)


def _good_shards(folder: Path, num_rows: int, shard_rows: int) -> dict[int, Shard]:
    """Shards of an earlier run whose files are there with the right checksums."""
    good = {}
    for number in range(-(-num_rows // shard_rows)):
        path = shard_json(folder, number)
        if path.is_file():
            try:
                shard = Shard.from_json(read_json(path))
            except (InputError, TypeError, KeyError, AttributeError):  # damaged: made again
                continue
            if shard.problem(folder, checksums=True) is None:
                good[number] = shard
    return good


def _new_shards(
    table: MoleculeTable, folder: Path, options: BuildOptions, done: set[int], advance: Advance
) -> Iterator[tuple[int, Shard]]:
    """Convert the rows of the shards that are not done, in order, and write each shard when it is complete."""
    convert = partial(
        convert_rows,
        num_targets=len(table.targets),
        fingerprints=options.fingerprints,
        max_atoms=options.max_atoms,
    )
    chunks = _chunks(table, options.shard_rows, done, advance)
    workers = options.workers if options.workers is not None else os.cpu_count() or 1
    converted = _in_parallel(convert, chunks, workers)
    for number, group in groupby(converted, key=lambda item: item[0][0].row // options.shard_rows):
        parts, rows = [], range(0)
        for chunk, part in group:
            parts.append(part)
            rows = range(number * options.shard_rows, chunk[-1].row + 1)
            advance(len(chunk))
        yield number, write_shard(folder, number, FlatMolecules.join(parts), rows)


def _chunks(table: MoleculeTable, shard_rows: int, done: set[int], advance: Advance) -> Iterator[list[SmilesRow]]:
    """Short runs of rows, none across the border of two shards."""
    for number, rows in groupby(table.rows(), key=lambda row: row.row // shard_rows):
        if number in done:
            advance(sum(1 for _ in rows))
            continue
        while chunk := list(islice(rows, CHUNK_ROWS)):
            yield chunk


def _in_parallel(
    convert: Convert, chunks: Iterator[list[SmilesRow]], workers: int
) -> Iterator[tuple[list[SmilesRow], FlatMolecules]]:
    """Chunks with their molecules, in order; a few chunks per worker are under way at any time."""
    if workers == 0:
        yield from ((chunk, convert(chunk)) for chunk in chunks)
        return
    # spawn: a forked child of a process with running threads may hang
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    waiting: deque[tuple[list[SmilesRow], Future[FlatMolecules]]] = deque()
    try:
        for chunk in chunks:
            waiting.append((chunk, pool.submit(convert, chunk)))
            if len(waiting) >= 4 * workers:
                yield _result(*waiting.popleft())
        while waiting:
            yield _result(*waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _result(chunk: list[SmilesRow], future: Future[FlatMolecules]) -> tuple[list[SmilesRow], FlatMolecules]:
    try:
        return chunk, future.result()
    except BrokenProcessPool as error:
        rows = f"{chunk[0].row} to {chunk[-1].row}"
        raise RuntimeError(f"a worker process died at rows {rows} or soon after: too little memory?") from error


def _refuse_nothing(table: MoleculeTable, shards: Iterable[Shard]) -> None:
    """Stop when no cell so far was a molecule: most likely the wrong column."""
    shards = list(shards)
    if any(shard.num_molecules for shard in shards):
        return
    unreadable = [bad for shard in shards for bad in shard.unreadable]
    first = min(unreadable, key=lambda bad: bad.row)
    raise ValueError(
        f"none of {len(unreadable)} cells in column {table.smiles!r} of {table.path} is a molecule; "
        f"row {first.row} is {first.smiles!r}: {first.reason}"
    )


@contextmanager
def _only_builder(folder: Path) -> Iterator[None]:
    """Hold the lock of a store, after whoever holds it now; the system frees it when a process dies."""
    try:
        import fcntl
    except ImportError:  # not on this system: no lock
        yield
        return
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _bar(title: str, total: int, show: bool) -> Iterator[Advance]:
    if not show:
        yield lambda count: None
        return
    rich = require("rich.progress", "molecules")
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
