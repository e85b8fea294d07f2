"""The command line: argument parsing, and nothing else."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout

from anyorder.cli import algebra, bench, domains, experiments, explain, export, predict, tune
from anyorder.cli.errors import report
from anyorder.cli.front import check_inputs, said, with_kind
from anyorder.cli.lazy import LazyParser
from anyorder.datasets.commands import add_commands as add_data
from anyorder.errors import InputError, printable
from anyorder.ops.allocation import keep_freed_memory
from anyorder.training.processes import is_main
from anyorder.training.signals import Stopped, heeding_signals

_DESCRIPTION = "Permutation-equivariant Transformers for sets, graphs, hypergraphs and maps between them."
_EXAMPLES = """examples:
  anyorder train DATA --dry-run             what it takes your data for, and what it would do
  anyorder classes 2 2                      the 15 classes of a layer from edges to edges
  anyorder list                             every experiment that can be run
  anyorder run chains --all --scale full    Table 1 of the paper
  anyorder table chains --records runs      measured values beside the paper's
  anyorder data list                        datasets, and which of them are present
  anyorder bench scaling --models gcn       time and memory against the number of edges
"""


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = LazyParser(
        prog="anyorder", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--version", action="version", version=f"anyorder {_version()}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=LazyParser)
    algebra.add_commands(commands)
    experiments.add_commands(commands)
    tune.add_commands(commands)
    domains.add_groups(commands)
    predict.add_commands(commands)
    explain.add_commands(commands)
    export.add_commands(commands)
    domains.add_below("", commands)
    bench.add_commands(commands)
    domains.add_below("data", add_data(commands))
    top.set_defaults(traceback=False)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; an error is a message and exit code 1, and the traceback of an unexpected one is in a file."""
    try:
        arguments = with_kind(sys.argv[1:] if arguments is None else arguments)
    except (InputError, OSError) as error:
        return said(error)
    args = parser().parse_args(arguments)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # read when torch is loaded: leave warnings to us
    try:
        with _only_the_first_speaks(), heeding_signals():
            check_inputs(args)
            return int(args.run(args))
    except Stopped as stop:
        print(printable(str(stop)), file=sys.stderr)
        return 128 + stop.number
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        return report(error, with_traceback=args.traceback)


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


def _version() -> str:
    from anyorder import __version__

    return __version__
