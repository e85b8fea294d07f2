"""What the build adds to the pages that are written by hand: results, the command line, examples, gallery, playground."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

HOOKS = Path(__file__).parent
ROOT = HOOKS.parents[1]
sys.path.insert(0, str(HOOKS))

import command_line  # noqa: E402
import drawings  # noqa: E402
import formulas  # noqa: E402
import gallery  # noqa: E402
import links  # noqa: E402
import playground  # noqa: E402
import reference  # noqa: E402
import results  # noqa: E402


def on_config(config: Any) -> Any:
    """Put the generated pages, and those written elsewhere, into the navigation."""
    for section in config["nav"]:
        if "Results" in section:
            section["Results"] = [
                {label: f"results/{name}"} if label else f"results/{name}" for label, name in results.names()
            ]
        if "Gallery" in section:
            section["Gallery"] = gallery.names()
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    made: dict[str, str | bytes] = {f"results/{name}": text for name, text in results.pages().items()}
    made |= {f"reference/{name}": text for name, text in reference.pages().items()}
    made |= {f"gallery/{name}": content for name, content in gallery.pages().items()}
    made |= {f"playground/weights/{name}": text for name, text in playground.scripts().items()}
    made["assets/classes_2_2.svg"] = drawings.classes(2, 2)
    made["assets/attention_2_1.svg"] = drawings.attention(2, 1)
    made["reference/command_line.md"] = command_line.page()
    made["project/examples.md"] = _examples()
    made["project/contributing.md"] = _root("CONTRIBUTING.md")
    made["project/changelog.md"] = _root("CHANGELOG.md")
    made["project/security.md"] = _root("SECURITY.md")
    made |= {f"results/{name}": content for name, content in results.pictures().items()}
    made |= links.copies()
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links out of the folder to the pages made here, and draw formulas between dollars."""
    if "/" not in page.file.src_uri:
        markdown = links.led(markdown)
    return re.sub(r"\$\$(.+?)\$\$", lambda found: formulas.convert(found[1], display="block"), markdown)


def _examples() -> str:
    parts = ["# Examples\n\nThe scripts of the folder `examples`, which the tests run.\n"]
    for path in sorted((ROOT / "examples").rglob("*")):
        if path.suffix in (".py", ".toml") and "egg-info" not in str(path):
            kind = "python" if path.suffix == ".py" else "toml"
            parts.append(f"## `{path.relative_to(ROOT)}`\n\n```{kind}\n{path.read_text(encoding='utf-8').rstrip()}\n```\n")
    return "\n".join(parts)


def _root(name: str) -> str:
    """A page that stands in the root of the repository."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](../")
    return text.replace("](examples/own_experiment)", "](examples.md)")
