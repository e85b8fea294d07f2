"""Bring a dataset into the data folder: download what has an address, make what is made, record what was not known."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from anyorder.datasets.download import DownloadError, download
from anyorder.datasets.entries import DataFile, Dataset
from anyorder.datasets.prepare import MAKERS
from anyorder.datasets.registry import Folder, dataset, folder, instructions, missing
from anyorder.datasets.verify import SUMS, check_file, measure, record, recorded

Say = Callable[[str], None]


def fetch(name: str, *, data_dir: Folder = None, force: bool = False, progress: bool = True, say: Say = print) -> Path:
    """Make sure that every file of a dataset is in its folder, and return the folder.

    Files that are there and right are left alone, also those put there by hand. A wrong one is an error; ``force``
    replaces it, and those that cannot be verified.
    """
    entry, home = dataset(name), folder(name, data_dir=data_dir)
    if entry.generated:
        say(f"{name} is generated while it is used: there is nothing to download")
        return home
    wanted = _wanted(entry, home, force=force)
    if not wanted:
        say(f"{name}: every file is in {home}")
        return home
    made = [file for file in wanted if file.url is None]
    if made and entry.make is None:
        raise FileNotFoundError(instructions(entry, made, data_dir=data_dir))
    try:
        sums = {file.path: _download(file, home / file.path, progress) for file in wanted if file.url is not None}
        if made:
            sums |= _make(entry, made, home, data_dir=data_dir, progress=progress, say=say)
    except DownloadError as error:
        absent = missing(name, data_dir=data_dir)
        raise DownloadError(
            f"{error}\n\n{instructions(entry, absent, data_dir=data_dir)}" if absent else str(error)
        ) from error
    unknown = {file.path: sums[file.path] for file in wanted if file.sha256 is None}
    if unknown:
        record(home, unknown)
        say(f"{name}: no checksum is published for {', '.join(unknown)}; recorded what came in {home / SUMS}")
    say(f"{name}: every file is in {home}")
    return home


def _wanted(entry: Dataset, home: Path, *, force: bool) -> list[DataFile]:
    """The files to bring; a wrong file is only replaced when that was asked for."""
    sums = recorded(home)
    reports = {file: check_file(file, home / file.path, sums.get(file.path)) for file in entry.files}
    wrong = [f"{home / file.path}: {report.state} ({report.detail})" for file, report in reports.items() if report.wrong]
    if wrong and not force:
        raise ValueError("; ".join(wrong) + ": move it away, or use --force to replace it")
    settled = ("ok",) if force else ("ok", "unverified")
    return [file for file, report in reports.items() if report.state not in settled]


def _download(file: DataFile, path: Path, progress: bool) -> str:
    if file.url is None:
        raise ValueError(f"{file.path} has no address")
    return download(file.url, path, size=file.size, sha256=file.sha256, progress=progress)


def _make(entry: Dataset, made: list[DataFile], home: Path, *, data_dir: Folder, progress: bool, say: Say) -> dict[str, str]:
    """Make files from the originals aside, verify them, and move them in; the checksum of each."""
    originals = home / "originals"
    downloaded = _bring_originals(entry, made, originals, data_dir=data_dir, progress=progress)
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
    _drop(downloaded, originals)
    return sums


def _bring_originals(
    entry: Dataset, made: list[DataFile], originals: Path, *, data_dir: Folder, progress: bool
) -> list[Path]:
    """Download the originals that are not there, check all, and return the downloaded ones."""
    downloaded = []
    for file in entry.originals:
        path = originals / file.path
        if not path.is_file():
            if file.url is None:
                raise FileNotFoundError(instructions(entry, made, data_dir=data_dir))
            _download(file, path, progress)
            downloaded.append(path)
        report = check_file(file, path)
        if not report.good:
            raise DownloadError(f"{path}: {report.state} ({report.detail}); move it away and run the command again")
    return downloaded


@contextmanager
def _staging(home: Path) -> Iterator[Path]:
    """A folder beside the files, gone afterwards whatever happens."""
    path = Path(tempfile.mkdtemp(prefix=".make-", dir=home))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _drop(downloaded: list[Path], originals: Path) -> None:
    """Remove downloaded originals and the folders they leave empty; what a person put there stays."""
    for path in downloaded:
        path.unlink()
        for parent in path.parents:
            if not parent.is_relative_to(originals) or any(parent.iterdir()):
                break
            parent.rmdir()
