"""What pages show is run: every block of Python, in the order of its page."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {
    str(path.relative_to(DOCS)): BLOCK.findall(path.read_text(encoding="utf-8"))
    for folder in ("start", "guides", "understand", "reference")
    for path in sorted((DOCS / folder).glob("*.md"))
}


def test_pages_have_blocks():
    assert sum(map(len, PAGES.values())) >= 15


@pytest.mark.parametrize("page", [page for page, blocks in PAGES.items() if blocks])
@pytest.mark.filterwarnings("ignore")
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for block in PAGES[page]:
        exec(compile(block, page, "exec"), names)
