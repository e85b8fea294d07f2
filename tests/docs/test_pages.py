"""What pages show is run: every block of Python, in the order of its page; commands are read by the real parsers."""

import re
import shlex
from pathlib import Path

import pytest

import anyorder.datasets.fetch
from anyorder.cli import main, parser
from anyorder.datasets.registry import locate
from data_folder import DATA

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```(?:bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
EVERY = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
ELSEWHERE = {"own_code.md", "core.md", "CONTRIBUTING.md"}  # tests of their own run their blocks
TRAINED = {"docs/graphs.md"}
PAGES = {
    str(path.relative_to(ROOT)): blocks
    for path in EVERY
    if path.name not in ELSEWHERE and (blocks := BLOCK.findall(path.read_text(encoding="utf-8")))
}
CHEAP = ("classes 2 1", "classes 2 1 --program linear", "list", "list hypergraphs", "list hyperedges", "data list")


def commands(page):
    """The lines of a page that call the command line, without comments."""
    for block in SHELL.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            if line.removeprefix("$ ").startswith("anyorder "):
                yield shlex.join(shlex.split(line.removeprefix("$ "), comments=True)[1:])


COMMANDS = {command: str(page.relative_to(ROOT)) for page in EVERY for command in commands(page)}


def test_pages_have_blocks():
    assert sum(map(len, PAGES.values())) >= 25
    assert len(COMMANDS) >= 60 and {*CHEAP} <= {*COMMANDS}


@pytest.mark.parametrize("page", [pytest.param(page, marks=[pytest.mark.slow] * (page in TRAINED)) for page in PAGES])
@pytest.mark.filterwarnings("ignore")
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page == "docs/data.md":  # what it downloads is here, or the page cannot be run
        if not (DATA / "dhne_hyperedges").is_dir():
            pytest.skip("no folder dhne_hyperedges in the data folder: set ANYORDER_DATA")
        monkeypatch.setenv("ANYORDER_DATA", str(DATA))
        monkeypatch.setattr(anyorder.datasets.fetch, "fetch", lambda name: locate(name))
    names: dict[str, object] = {"__name__": "page"}
    for block in PAGES[page]:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_line_knows_every_command_of_the_pages(command, capsys):
    try:
        parser().parse_args(shlex.split(command))
    except SystemExit:
        pytest.fail(f"{COMMANDS[command]}: anyorder {command}: {capsys.readouterr().err}")


@pytest.mark.parametrize("command", CHEAP)
def test_cheap_commands_of_the_pages_run(command, capsys):
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out
