"""``python -m mutants --sample 60``: small faults put into algebra, layouts and layers, and how many the tests see.

Each fault is one changed operator, comparison, condition or constant, drawn by a seed. A process that has imported torch
forks, imports the package with the fault in it and runs tests until the first one fails: those of the mirrored folder, the
examples of the folder itself, then those of the layers, which all of it serves.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("algebra", "layouts", "layers")
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPARISONS |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
OPERATORS |= {ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.MatMult: ast.Add}
PICTURES = ("draw.py",)
"""Files of nothing but coordinates."""
TESTS = {
    "algebra": ("tests/algebra", "src/anyorder/algebra", "tests/layers"),
    "layouts": ("tests/layouts", "src/anyorder/layouts", "tests/layers"),
    "layers": ("tests/layers", "src/anyorder/layers", "tests/models"),
}
MEMORY = 8 * 2**30
"""Bytes; a fault that asks for more is seen."""
SLOW = 900.0
"""Seconds after which a fault counts as seen: it makes something that does not end."""


@dataclass(frozen=True)
class Mutant:
    """The fault with this number among those of a file."""

    path: Path
    number: int
    line: int
    fault: str

    @property
    def folder(self) -> str:
        return self.path.relative_to(ROOT / "src" / "anyorder").parts[0]

    @property
    def module(self) -> str:
        return ".".join(self.path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Nodes that can be changed, with words for the fault; annotations, fields and the words of errors are left alone."""
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in ("field", "get_close_matches"):
        return  # whether a field is printed; how many names are compared
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list") or isinstance(tree, (ast.Raise, ast.JoinedStr, ast.Assert)):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                found = fault(node)
                if found is not None:
                    yield node, found
                yield from places(node)


def fault(node: ast.AST) -> str | None:
    """What would be wrong about a node; None where it stays as it is."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        return f"{type(node.ops[0]).__name__} -> {COMPARISONS[type(node.ops[0])].__name__}"
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in OPERATORS:
        return f"{type(node.op).__name__} -> {OPERATORS[type(node.op)].__name__}"
    if isinstance(node, ast.BoolOp):
        return "and <-> or"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        return f"without {type(node.op).__name__}"
    if isinstance(node, (ast.If, ast.IfExp, ast.While)) and not _of_types(node.test):
        return f"condition of {type(node).__name__} negated"
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        return f"{node.value} -> {_other(node.value)}"
    return None


def _of_types(test: ast.AST) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _other(value: bool | int | float) -> bool | int | float:
    return not value if isinstance(value, bool) else value + 1


def change(node: ast.AST) -> None:
    """Put the fault in."""
    if isinstance(node, ast.Compare):
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Constant):
        assert isinstance(node.value, (bool, int, float))
        node.value = _other(node.value)


def all_mutants(folder: str) -> list[Mutant]:
    """Every fault that could be put into a folder of the package."""
    found = []
    for path in sorted((ROOT / "src" / "anyorder" / folder).rglob("*.py")):
        if path.name in PICTURES:
            continue
        for number, (node, words) in enumerate(places(ast.parse(path.read_text()))):
            found.append(Mutant(path, number, getattr(node, "lineno", 0), words))
    return found


def mutated(mutant: Mutant) -> ast.Module:
    tree = copy.deepcopy(ast.parse(mutant.path.read_text()))
    change([node for node, _ in places(tree)][mutant.number])
    return ast.fix_missing_locations(tree)


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module with the fault in it."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.mutant.module:
            return None
        return importlib.util.spec_from_file_location(name, self.mutant.path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(mutated(self.mutant), str(self.mutant.path), "exec"), module.__dict__)


def survives(mutant: Mutant) -> bool:
    """Whether all tests of the folder pass with the fault."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            sys.meta_path.insert(0, Loader(mutant))
            code = _tests(mutant.folder)
        finally:
            os._exit(code)
    ends = time.monotonic() + SLOW
    while time.monotonic() < ends:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.kill(process, 9)
    os.waitpid(process, 0)
    return False


def _tests(folder: str) -> int:
    import pytest

    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:randomly", "-m", "not slow"]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return int(pytest.main([*options, *(str(ROOT / place) for place in TESTS[folder])]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=60, help="faults of each folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folders", default=",".join(FOLDERS))
    parser.add_argument("--record", type=Path, help="JSON file to which what came of each fault is added")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    os.environ["ANYORDER_BACKEND"] = "reference"
    counts: dict[str, Counter[str]] = {}
    for folder in args.folders.split(","):
        every = all_mutants(folder)
        drawn = random.Random(f"{args.seed} {folder}").sample(every, min(args.sample, len(every)))
        counts[folder] = Counter(all=len(every))
        for mutant in drawn:
            left = survives(mutant)
            counts[folder]["survived" if left else "seen"] += 1
            words = f"{mutant.path.relative_to(ROOT)}:{mutant.line}: {mutant.fault}"
            print(f"{'survived' if left else 'seen    '} {words}", flush=True)
            if args.record is not None:
                with args.record.open("a") as file:
                    file.write(json.dumps({"folder": folder, "survived": left, "fault": words}) + "\n")
    print(table(counts))
    return 0


def table(counts: dict[str, Counter[str]]) -> str:
    """Markdown: a line per folder."""
    lines = ["| folder | possible faults | drawn | seen | survived | score |", "|---|---:|---:|---:|---:|---:|"]
    for folder, count in counts.items():
        drawn = count["seen"] + count["survived"]
        lines.append(
            f"| {folder} | {count['all']} | {drawn} | {count['seen']} | {count['survived']} | {count['seen'] / drawn:.0%} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
