"""Where a run runs: processes, precision, folders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from anyorder.errors import InputError
from anyorder.suggest import nearest

PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")
ACCELERATORS = ("auto", "cpu", "gpu", "cuda", "mps")


@dataclass(frozen=True)
class Machine:
    """Where and how to run: nothing here may change the result beyond rounding."""

    devices: int = 1
    """Processes on each machine."""
    nodes: int = 1
    precision: str = "32-true"
    workers: int = 0
    accelerator: str = "auto"
    progress: bool = True
    data_dir: Path | None = None
    save_every: float = 600.0
    """Seconds after which the state is saved within an epoch, too."""
    minutes: float | None = None
    """Train no longer than this (and the epoch it ends in) at a time, test the state reached, and resume when run again."""

    def __post_init__(self) -> None:
        for name, least in (("devices", 1), ("nodes", 1), ("workers", 0), ("save_every", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.minutes is not None and not self.minutes > 0:
            raise InputError(f"minutes must be more than 0, got {self.minutes}")
        if self.precision not in PRECISIONS:
            raise InputError(f"unknown precision {self.precision!r}{nearest(self.precision, PRECISIONS)}")
        if self.accelerator not in ACCELERATORS:
            raise InputError(f"unknown accelerator {self.accelerator!r}{nearest(self.accelerator, ACCELERATORS)}")
        if self.precision == "16-mixed" and (self.accelerator == "cpu" or not torch.cuda.is_available()):
            raise InputError("16-mixed needs a GPU: on this machine use bf16-mixed")

    @property
    def processes(self) -> int:
        return self.devices * self.nodes

    def placed(self, environment: Mapping[str, str] | None = None) -> Machine:
        """The same machine with as many processes as ``torchrun`` or ``srun`` has started.

        >>> Machine().placed({"TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}).nodes
        2
        """
        found = _started(os.environ if environment is None else environment)
        if found is None or (self.devices, self.nodes) == found[1:]:
            return self
        starter, devices, nodes = found
        if self.processes > 1:
            raise InputError(
                f"{starter} has started {devices} processes on each of {nodes} machines, "
                f"but --devices {self.devices} --nodes {self.nodes} was asked for: leave these options out"
            )
        return replace(self, devices=devices, nodes=nodes)

    def to_data(self) -> dict[str, Any]:
        """What to remember for resuming."""
        return {
            "devices": self.devices,
            "nodes": self.nodes,
            "precision": self.precision,
            "workers": self.workers,
            "accelerator": self.accelerator,
            "data_dir": None if self.data_dir is None else str(self.data_dir.absolute()),
            "save_every": self.save_every,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Machine:
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data and name != "progress"}
        folder = known.get("data_dir")
        return cls(**{**known, "data_dir": None if folder is None else Path(folder)})


def _started(environment: Mapping[str, str]) -> tuple[str, int, int] | None:
    """Who started how many processes on how many machines, if it was not this package."""
    if "TORCHELASTIC_RUN_ID" in environment:
        world, local = int(environment["WORLD_SIZE"]), int(environment["LOCAL_WORLD_SIZE"])
        return "torchrun", local, world // local
    by_hand = environment.get("SLURM_JOB_NAME") in ("bash", "interactive")
    if "SLURM_NTASKS" in environment and not by_hand:
        tasks, nodes = int(environment["SLURM_NTASKS"]), int(environment.get("SLURM_NNODES", "1"))
        return "srun", tasks // nodes, nodes
    return None
