"""Records: what a run was, where it ran and what came out."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from anyorder.training.files import read_json, write_json

RECORD = "record.json"
_PACKAGES = ("anyorder", "torch", "numpy", "lightning", "torch_geometric", "scikit-learn", "scipy", "numba")


@dataclass(frozen=True)
class Record:
    """The result of one run: metrics maps the parts of the dataset ('' for the whole) to their metrics."""

    recipe: str
    table: str
    dataset: str
    row: str
    scale: str
    seed: int
    reduced: str
    overrides: tuple[str, ...]
    config: dict[str, Any]
    metrics: dict[str, dict[str, float]]
    history: list[dict[str, float]]
    wall_seconds: float
    parameters: int
    versions: dict[str, str] = field(default_factory=dict)
    commit: str = ""
    hardware: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        write_json(path, {"kind": "anyorder-record", **vars(self)})

    @classmethod
    def read(cls, path: Path) -> Record:
        data = read_json(path)
        if not isinstance(data, dict) or data.pop("kind", None) != "anyorder-record":
            raise ValueError(f"{path} is not a record of a run")
        missing = set(cls.__dataclass_fields__) - data.keys()
        if missing:
            raise ValueError(f"{path} lacks {sorted(missing)}")
        data["overrides"] = tuple(data["overrides"])
        return cls(**{name: data[name] for name in cls.__dataclass_fields__})


def read_records(folder: Path, *, table: str | None = None) -> list[Record]:
    """All records below a folder, those of one table if named."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there are no records: {folder} does not exist; `anyorder run` makes some")
    records = [Record.read(path) for path in sorted(_record_files(folder))]
    return [record for record in records if table is None or record.table == table]


def _record_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.json"):
        if path.name == RECORD or path.name.startswith("record-"):
            yield path


def split_metrics(flat: dict[str, float]) -> dict[str, dict[str, float]]:
    """Metrics by part of the dataset.

    >>> split_metrics({"F1": 0.5, "B/F1": 0.4})
    {'': {'F1': 0.5}, 'B': {'F1': 0.4}}
    """
    parts: dict[str, dict[str, float]] = {}
    for name, value in flat.items():
        part, _, metric = name.rpartition("/")
        parts.setdefault(part, {})[metric] = float(value)
    return parts


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that matter for a result."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit of the source tree, with a mark where it has changes; empty outside of one."""
    here = Path(__file__).parent
    try:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, timeout=10, check=True)
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"], cwd=here, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return head.stdout.strip() + ("+changes" if changed.stdout.strip() else "")


def hardware() -> dict[str, Any]:
    """What the run ran on."""
    gpus = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return {
        "machine": platform.machine(),
        "system": sys.platform,
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "gpus": gpus,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
