"""The command line: argument parsing, and nothing else."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout

from anyorder.cli import algebra, bench, experiments, models
from anyorder.datasets.commands import add_commands as add_data
from anyorder.experiments.set_to_graph import commands as set_to_graph
from anyorder.ops.allocation import keep_freed_memory
from anyorder.training.processes import is_main

_DESCRIPTION = "Permutation-equivariant Transformers for sets, graphs, hypergraphs and maps between them."
_EXAMPLES = """examples:
  anyorder classes 2 2                      the 15 classes of a layer from edges to edges
  anyorder list                             every experiment that can be run
  anyorder run chains --all --scale full    Table 1 of the paper
  anyorder table chains --records runs      what came of it beside the paper's values
  anyorder data list                        datasets, and whether they are here
  anyorder bench scaling --models gcn       time and memory against the number of edges
"""


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(
        prog="anyorder", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--version", action="version", version=f"anyorder {_version()}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    algebra.add_commands(commands)
    experiments.add_commands(commands)
    models.add_commands(commands)
    bench.add_commands(commands)
    set_to_graph.add_data(add_data(commands))
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; an error of the user's is a message and exit code 1, not a traceback."""
    args = parser().parse_args(arguments)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # read when torch is loaded: leave warnings to us
    try:
        with _only_the_first_speaks():
            return int(args.run(args))
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (OSError, ValueError, TypeError, ModuleNotFoundError, FloatingPointError) as error:
        print(f"error: {_explained(error)}", file=sys.stderr)
        return 1
    except RuntimeError as error:
        if "peer" not in str(error):
            raise
        print("error: another process of this run has ended, so this one ends, too", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; `anyorder resume DIR` goes on with a run", file=sys.stderr)
        return 130


def script() -> int:
    """The command ``anyorder``: a process of our own, whose memory we manage."""
    keep_freed_memory()
    return main()


@contextmanager
def _only_the_first_speaks() -> Iterator[None]:
    """Several processes run the same command: only one of them prints."""
    if is_main():
        yield
        return
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        yield


def _explained(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name in ("lightning", "safetensors", "sklearn", "tensorboard"):
        return f"{error.name} is needed here and is not installed: pip install 'anyorder[train]'"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    return str(error) or type(error).__name__


def _version() -> str:
    from anyorder import __version__

    return __version__
