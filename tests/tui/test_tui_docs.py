"""The reference page of the terminal UI lists every key: `python -m tests.tui.test_tui_docs` writes them into it."""

from __future__ import annotations

import re
from pathlib import Path

from replaydbg.tui.keys import ACTS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "tui.md"
_BLOCK = re.compile(r"(<!-- keys: .*? -->\n).*?(<!-- end of keys -->)", re.S)


def table() -> str:
    """Return the keys as Markdown."""
    lines = ["", "| key | action | description |", "|---|---|---|"]
    for each in ACTS:
        keys = " ".join(f"`{key}`" for key in each.keys.split())
        lines.append(f"| {keys} | {each.id} | {each.title} |")
    return "\n".join([*lines, "", ""])


def test_the_page_has_every_key() -> None:
    found = _BLOCK.search(PAGE.read_text(encoding="utf-8"))

    assert found is not None
    assert found[0] == f"{found[1]}{table()}{found[2]}"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_BLOCK.sub(lambda found: f"{found[1]}{table()}{found[2]}", page), encoding="utf-8")
