"""Bring a dataset into the data folder: download what has an address, make what is made, record what was not known."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from anyorder.data.download import DownloadError, download
from anyorder.data.entries import DataFile, Dataset
from anyorder.data.prepare import MAKERS
from anyorder.data.registry import Folder, dataset, folder, instructions, missing
from anyorder.data.verify import check_file, measure, record, recorded

Say = Callable[[str], None]


def fetch(name: str, *, data_dir: Folder = None, force: bool = False, progress: bool = True, say: Say = print) -> Path:
    """Make sure that every file of a dataset is in its folder, and return the folder.

    Files that are there are left alone unless ``force``; those put there by hand are as good as downloaded ones.
    """
    entry, home = dataset(name), folder(name, data_dir=data_dir)
    if entry.generated:
        say(f"{name} is generated while it is used: there is nothing to download")
        return home
    wanted = entry.files if force else missing(name, data_dir=data_dir)
    if not wanted:
        say(f"{name}: all {len(entry.files)} files are in {home} (`anyorder data check {name}` verifies them)")
        return home
    made = [file for file in wanted if file.url is None]
    if made and entry.make is None:
        raise FileNotFoundError(instructions(entry, made, data_dir=data_dir))
    sums = {file.path: _download(file, home / file.path, progress) for file in wanted if file.url is not None}
    if made:
        sums |= _make(entry, made, home, data_dir=data_dir, progress=progress, say=say)
    unknown = {file.path: sums[file.path] for file in wanted if file.sha256 is None}
    if unknown:
        record(home, unknown)
        say(f"{name}: no checksum is published for {', '.join(unknown)}; recorded what came in {home / 'SHA256SUMS'}")
    say(f"{name}: {len(wanted)} files are now in {home}")
    return home


def _download(file: DataFile, path: Path, progress: bool) -> str:
    if file.url is None:
        raise ValueError(f"{file.path} has no address")
    return download(file.url, path, size=file.size, sha256=file.sha256, progress=progress)


def _make(
    entry: Dataset, made: list[DataFile], home: Path, *, data_dir: Folder, progress: bool, say: Say
) -> dict[str, str]:
    """Make files from the originals aside, verify them, and move them in; the checksum of each."""
    originals = home / "originals"
    _bring_originals(entry, made, originals, data_dir=data_dir, progress=progress)
    say(f"{entry.name}: making {', '.join(file.path for file in made)}")
    with _staging(home) as staging:
        MAKERS[entry.make or ""](entry, originals, staging)
        reports = [check_file(file, staging / file.path) for file in made]
        wrong = [f"{report.path}: {report.state} ({report.detail})" for report in reports if not report.good]
        if wrong:
            raise DownloadError(f"{entry.name}: the originals did not give the files expected: " + "; ".join(wrong))
        sums = {file.path: measure(staging / file.path, content=file.content)[1] for file in made}
        for file in made:
            (home / file.path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(staging / file.path, home / file.path)
    _drop_downloaded(entry, originals)
    return sums


def _bring_originals(
    entry: Dataset, made: list[DataFile], originals: Path, *, data_dir: Folder, progress: bool
) -> None:
    sums = recorded(originals)
    for file in entry.originals:
        path = originals / file.path
        if not path.is_file():
            if file.url is None:
                raise FileNotFoundError(instructions(entry, made, data_dir=data_dir))
            _download(file, path, progress)
        report = check_file(file, path, sums.get(file.path))
        if not report.good:
            raise DownloadError(f"{path}: {report.state} ({report.detail}); delete it and run the command again")


class _staging:
    """A folder beside the files, gone afterwards whatever happens."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __enter__(self) -> Path:
        self.path = Path(tempfile.mkdtemp(prefix=".make-", dir=self.home))
        return self.path

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _drop_downloaded(entry: Dataset, originals: Path) -> None:
    """Remove the originals that can be downloaded again; what a person put there stays."""
    for file in entry.originals:
        if file.url is not None:
            (originals / file.path).unlink(missing_ok=True)
    for path in sorted(originals.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    if originals.is_dir() and not any(originals.iterdir()):
        originals.rmdir()
