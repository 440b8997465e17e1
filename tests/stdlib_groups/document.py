"""The page of results: a table for each version of Python, whose rows later runs replace."""

import re
from collections.abc import Sequence
from pathlib import Path

from tests.harness.table import as_markdown

_SECTION = re.compile(r"^## Python (?P<version>[\d.]+)$\n(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def update(document: Path, introduction: str, version: str, heading: Sequence[str], rows: Sequence[list[str]]) -> None:
    """Write the rows of a version into the page; its other rows, and other versions, stay."""
    text = document.read_text() if document.exists() else ""
    tables = {match["version"]: _rows(match["body"]) for match in _SECTION.finditer(text)}
    minor = version.rpartition(".")[0]
    before = [each for each in tables if each.rpartition(".")[0] == minor]
    kept = tables.pop(before[0]) if before else []
    new = {row[0]: row for row in rows}
    merged = [new.pop(row[0], row) for row in kept]
    tables[version] = [*merged, *new.values()]
    parts = [introduction]
    for each in sorted(tables, key=lambda name: [int(number) for number in name.split(".")]):
        parts.append(f"## Python {each}\n\n{as_markdown(heading, tables[each])}\n")
    document.write_text("\n".join(parts))


def _rows(body: str) -> list[list[str]]:
    lines = [line for line in body.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
