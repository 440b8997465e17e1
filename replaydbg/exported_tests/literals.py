"""Write recorded values as Python literals: whatever they are, they stay data, in ASCII."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

MOST_INLINE = 1000
"""Bytes of a content that stands in the test itself; a longer one becomes a file beside it."""
_WIDTH = 110
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Literals:
    """Makes literals, and files for what is long."""

    def __init__(self, mask: Callable[[bytes], bytes]) -> None:
        """`mask` replaces secrets."""
        self._mask = mask
        self.files: dict[str, bytes] = {}
        """Contents of the files by their names, which are made here."""
        self.has_masked = False

    def value(self, value: object) -> str:
        """Return a literal for plain data."""
        if isinstance(value, str):
            return quoted(self._masked(value.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass"))
        if isinstance(value, bytes | bytearray):
            return quoted(self._masked(bytes(value)))
        if isinstance(value, float) and not math.isfinite(value):
            return f"float({str(value)!a})"
        if isinstance(value, tuple | list):
            items = ", ".join(map(self.value, value))
            comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
            return f"({items}{comma})" if isinstance(value, tuple) else f"[{items}]"
        if value is None or isinstance(value, bool | int | float):
            return ascii(value)
        raise AssertionError(f"no plain data: {type(value)!r}")

    def content(self, data: bytes, name: str, indent: int = 0) -> str:
        """Return an expression for bytes: a literal, or a read of a file whose name is like `name`."""
        data = self._masked(data)
        if len(data) > MOST_INLINE:
            file = self._file_name(name)
            self.files[file] = data
            return f"content({quoted(file)})"
        lines = data.splitlines(keepends=True)
        if len(ascii(data)) + indent <= _WIDTH or not lines:
            return quoted(data)
        space = " " * (indent + 4)
        pieces = [each[at : at + 80] for each in lines for at in range(0, len(each), 80)]
        return "(\n" + "".join(f"{space}{quoted(each)}\n" for each in pieces) + " " * indent + ")"

    def listed(self, values: list[object], indent: int = 0) -> str:
        """Return a list, a line for each value if they do not fit into one."""
        shown = [self.value(each) for each in values]
        line = f"[{', '.join(shown)}]"
        if len(line) + indent <= _WIDTH:
            return line
        space = " " * (indent + 4)
        return "[\n" + "".join(f"{space}{each},\n" for each in shown) + " " * indent + "]"

    def _masked(self, data: bytes) -> bytes:
        masked = self._mask(data)
        self.has_masked = self.has_masked or masked != data
        return masked

    def _file_name(self, name: str) -> str:
        """Return a name for a file, which leads nowhere else whatever `name` is."""
        safe = _UNSAFE.sub("_", name.rpartition("/")[2])[-60:].lstrip(".") or "content"
        known, number = safe, 1
        while known.lower() in {each.lower() for each in self.files}:
            number += 1
            known = f"{number}-{safe}"
        return known


def quoted(value: str | bytes) -> str:
    """Return a literal in ASCII, in double quotes if it needs no escape for that."""
    text = ascii(value)
    at = text.index("'") if "'" in text[:2] else -1
    return text if at < 0 or '"' in text else f'{text[:at]}"{text[at + 1 : -1]}"'


def comment(text: str) -> str:
    """Return a text that cannot end a comment: one line, of printable ASCII."""
    return "".join(each if each.isascii() and each.isprintable() else ascii(each)[1:-1] for each in text)
