"""Imports go one way, those inside of functions too; no experiment knows another, no module comes back to itself."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import anyorder

ROOT = Path(anyorder.__file__).parent
HOUSE = ("algebra", "layouts", "ops", "layers", "models", "training", "experiments", "cli")
TOOLS = ("arrays", "errors", "extras", "files", "peek", "positions", "saving", "suggest", "weights")
"""Modules beside the folders that everything may use and that use nothing but each other."""
BESIDE = {
    "datasets": (),
    "convert": ("algebra", "layouts"),
    "testing": ("algebra", "layouts"),
    "bench": HOUSE[:5],
    "pyg": HOUSE[:5],
}
USES = {
    **{name: HOUSE[: HOUSE.index(name)] for name in HOUSE},
    **BESIDE,
    "experiments": (*HOUSE[:6], "convert", "datasets"),
    "cli": (*HOUSE[:7], *BESIDE),
    "estimators": HOUSE[:7],
    "__init__": HOUSE[:7],
    "__main__": ("cli",),
    **dict.fromkeys(TOOLS, ()),
}
"""Which folders a folder may import, besides itself."""


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)] = path
    return found


MODULES = modules()


def imports(path: Path, *, typing: bool = True) -> Iterator[str]:
    """The modules of this package that a file imports anywhere in it; ``typing``: those for the type checker, too."""
    tree = ast.parse(path.read_text())
    checked = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in checked and not typing:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "anyorder")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            if (node.module or "").split(".")[0] == "anyorder":
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    yield whole if whole in MODULES else str(node.module)


def folder(module: str) -> str:
    """The folder of a module, or its own name beside the folders."""
    return ([*module.split("."), "__init__"])[1]


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module: str) -> None:
    here = folder(module)
    for other in imports(MODULES[module]):
        allowed = (here, "__init__", *TOOLS, *USES[here])
        assert folder(other) in allowed, f"{module} imports {other}"


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("anyorder.experiments.")])
def test_no_experiment_imports_another(module: str) -> None:
    here = module.split(".")[2]
    for other in imports(MODULES[module]):
        if other.startswith("anyorder.experiments."):
            assert other.split(".")[2] == here, f"{module} imports {other}"


def test_no_module_comes_back_to_itself() -> None:
    graph = {module: set(imports(path, typing=False)) - {module} for module, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


def test_every_folder_has_its_place() -> None:
    assert {folder(module) for module in MODULES} <= USES.keys()


def test_no_class_name_occurs_twice() -> None:
    homes: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module)
    assert not {name: where for name, where in homes.items() if len(where) > 1}


def test_the_walk_sees_imports_inside_of_functions(tmp_path: Path) -> None:
    file = tmp_path / "lazy.py"
    file.write_text("def f():\n    from anyorder.cli import main\n    import anyorder.layers.linear\n")
    assert [*imports(file)] == ["anyorder.cli", "anyorder.layers.linear"]
