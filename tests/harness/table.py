"""Format strings as plain text and Markdown tables."""

from collections.abc import Sequence


def as_text(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return columns as wide as their widest cell; cells that begin with a digit, and dashes, are right-aligned."""
    lines = [heading, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
    return "\n".join(
        "  ".join(_placed(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _placed(cell: str, width: int) -> str:
    return cell.rjust(width) if cell[:1].isdigit() or cell == "-" else cell.ljust(width)


def as_markdown(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; bars inside cells are escaped."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def with_unit(size: float) -> str:
    """Return a number of bytes for people: `512 B`, `3.4 KiB`, `1.2 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
