"""Code blocks of Markdown pages, and the marks before them, which say how a test runs them.

A mark is a comment on a line of its own, directly before a block:

    <!-- not run: needs two machines -->   it cannot run in a test; the reason
    <!-- file: shop.py -->                 it is the content of this file
    <!-- replaces: paid = 1 (shop.py) -->  it replaces this text in this file
    <!-- varies: sizes, /[a-z]+/ -->       what differs from run to run: kinds of `comparison.py`, regular expressions
    <!-- exits: 1 3 -->                    the exit codes of its commands besides 0
    <!-- before: rm shop.py -->            a command that runs before it; `after` likewise
    <!-- background -->                    its last command goes on while the page does; its process id is $BACKGROUND
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
KINDS = ("not run", "file", "replaces", "varies", "exits", "before", "after", "background")
_MARK = re.compile(rf"^ *<!-- ({'|'.join(KINDS)})(?:: (.*))? -->$")
_FENCE = re.compile(r"^( *)```([\w-]*)$")


class BadPage(Exception):
    """A page whose blocks or marks cannot be read."""


@dataclass(frozen=True, slots=True)
class Block:
    """A code block."""

    page: str
    """Path of the page, relative to the project's directory."""
    line: int
    """Line of its fence, from 1."""
    language: str
    text: str
    marks: tuple[tuple[str, str], ...]
    """Kinds and values."""

    @property
    def place(self) -> str:
        """Where it is, as compilers print it."""
        return f"{self.page}:{self.line}"

    def values(self, kind: str) -> list[str]:
        """The values of its marks of a kind."""
        return [value for each, value in self.marks if each == kind]

    def value(self, kind: str) -> str | None:
        """The value of its only mark of a kind; None: it has none."""
        found = self.values(kind)
        if len(found) > 1:
            raise BadPage(f"{self.place}: two marks `{kind}`")
        return found[0] if found else None


def pages() -> list[Path]:
    """Return the pages of the documentation."""
    top = (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "tests/README.md"))
    return [*top, *sorted(ROOT.glob("docs/**/*.md"))]


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page in order. Raises BadPage for a mark without a block, and a block without an end."""
    return parsed(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT)))


def parsed(text: str, page: str) -> list[Block]:
    """Return the blocks of a page's text. Raises BadPage."""
    found: list[Block] = []
    marks: list[tuple[str, str]] = []
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if mark := _MARK.match(line):
            marks.append((mark[1], mark[2] or ""))
            continue
        fence = _FENCE.match(line)
        if fence is None:
            if marks:
                raise BadPage(f"{page}:{number}: a mark must be directly before a block")
            if "```" in line and not re.search("`+[^`]*`+", line.replace("```", "")):
                raise BadPage(f"{page}:{number}: a fence that cannot be read")
            continue
        body = []
        for _, inner in lines:
            if inner == f"{fence[1]}```":
                break
            body.append(inner)
        else:
            raise BadPage(f"{page}:{number}: a block without an end")
        content = (
            textwrap.dedent("".join(f"{each}\n" for each in body))
            if fence[1]
            else "".join(f"{each}\n" for each in body)
        )
        found.append(Block(page, number, fence[2], content, tuple(marks)))
        marks = []
    if marks:
        raise BadPage(f"{page}: a mark must be directly before a block")
    return found
