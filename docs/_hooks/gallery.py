"""The gallery: scripts that the build runs, each with its output and picture, kept until script or version changes."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import anyorder

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "docs" / "gallery"
CACHE = ROOT / "build" / "gallery"
LONGEST = 40


@dataclass(frozen=True)
class Example:
    """A script and what running it gave."""

    name: str
    source: str
    output: str
    seconds: float
    picture: bytes

    @property
    def title(self) -> str:
        """The first sentence of its docstring."""
        return (ast.get_docstring(ast.parse(self.source)) or self.name).splitlines()[0].rstrip(".")


def pages() -> dict[str, str | bytes]:
    """Path below gallery/ to Markdown or a picture."""
    examples = [_run(path) for path in sorted(SCRIPTS.glob("*.py"))]
    made: dict[str, str | bytes] = {"index.md": _index(examples)}
    for each in examples:
        made[f"{each.name}.md"] = _page(each)
        made[f"{each.name}.svg"] = each.picture
    return made


def names() -> list[str | dict[str, str]]:
    """The pages in their order under short labels, the overview first."""
    labels = {
        path: re.split("[:,]", path.read_text(encoding="utf-8").removeprefix('"""'))[0] for path in SCRIPTS.glob("*.py")
    }
    return ["gallery/index.md", *({label: f"gallery/{path.stem}.md"} for path, label in sorted(labels.items()))]


def _run(path: Path) -> Example:
    source = path.read_text(encoding="utf-8")
    folder = CACHE / f"{path.stem}-{hashlib.sha256(f'{source}{anyorder.__version__}'.encode()).hexdigest()[:16]}"
    if not (folder / "done.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        environment = {**os.environ, "MPLBACKEND": "svg", "PYTHONWARNINGS": "ignore"}
        done = subprocess.run([sys.executable, path], cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{path.name} failed:\n{done.stderr}")
        known = {"output": done.stdout, "seconds": time.monotonic() - started}
        (folder / "done.json").write_text(json.dumps(known), encoding="utf-8")
    known = json.loads((folder / "done.json").read_text(encoding="utf-8"))
    return Example(path.stem, source, known["output"], known["seconds"], (folder / "picture.svg").read_bytes())


def _index(examples: list[Example]) -> str:
    cards = "\n".join(
        f'<a href="{each.name}.html"><img src="{each.name}.svg" alt="Picture of this example"><br>{each.title}</a>'
        for each in examples
    )
    count = f"{len(examples)} scripts of at most {LONGEST} lines, run when this site was built, on one thread of a CPU."
    return f'# Gallery\n\n{count}\n\n<div class="ao-cards" markdown="0">\n{cards}\n</div>\n'


def _page(each: Example) -> str:
    picture = f"![The picture that the script draws: {each.title}]({each.name}.svg){{ .ao-picture }}"
    said = "\n".join(
        line for line in each.output.splitlines() if line.strip() and line[0] not in "#|*"
    )  # not the banners of tools
    output = f"It prints:\n\n```text\n{said}\n```\n"
    return f"# {each.title}\n\n{picture}\n\n```python\n{each.source.rstrip()}\n```\n\n{output}"
