"""Writes `replaydbg/native/base/constants.h`: the numbers that the C core shares with the Python side.

The Python side is the source: the format's tags stand in `log/coding/encode.py`, its records in
`log/entries/stream.py`, what a gate's row says in `gates/row.py`. After a change
there: `python -m tests.native.constants`.
"""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from replaydbg.events.transfers import KINDS
from replaydbg.gates import row
from replaydbg.log import transfers
from replaydbg.log.coding import encode
from replaydbg.log.edit import definitions
from replaydbg.log.entries import stream

HEADER = Path(__file__).parents[2] / "replaydbg" / "native" / "base" / "constants.h"

NO_TAGS = {"FORMAT", "MAX_DEPTH"}
"""Numbers of encode.py that are none of a value's tags."""

NO_FLAGS = {"NO_BUFFER"}
"""Numbers of row.py that are none of a row's flags."""

TRANSFER_FLAGS = ("RECEIVES", "PEEKS", "URGENT", "PARTLY_KNOWN", "TO_OUTPUT", "TO_ERROR", "PASSES", "DEFINES")
"""Bits of a transfer in log/transfers.py."""

DEFINITIONS = ("CODE", "SITE", "ARGUMENTS", "TYPE")
"""Which definition has which number: `LogStream._define()` reads them."""

CONTROL_KINDS = 32
"""Heads of control records take one byte, of which two bits say that it is one."""


def numbers(module: ModuleType, but: set[str]) -> dict[str, int]:
    """The numbers that a module names, in the order in which it names them."""
    return {
        name: value
        for name, value in vars(module).items()
        if name.isupper() and type(value) is int and name not in but and name[0] != "_"
    }


def meanings(module: ModuleType) -> dict[str, str]:
    """The comment of a module under each name, in one line."""
    body = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body
    found = {}
    for node, after in pairwise(body):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[node.targets[0].id] = " ".join(str(after.value.value).split()).rstrip(".")
    return found


def controls() -> dict[str, int]:
    """The numbers of control records by their names in C."""
    kinds = {kind.name: number for number, kind in enumerate(stream._CONTROLS)}
    kinds |= {kind.name: number for number, kind in stream._LATER_CONTROLS.items()}
    kinds["WORLD"] = definitions._WORLD
    return kinds


def endpoint_kinds() -> dict[str, int]:
    """The kinds of endpoints, as a definition has them."""
    return {name.upper().replace("-", "_"): number for number, name in enumerate(KINDS, 1)}


def _enum(prefix: str, numbers: dict[str, int], meanings: dict[str, str] | None = None) -> str:
    lines = []
    for name, number in numbers.items():
        meaning = (meanings or {}).get(name)
        lines.append(f"    {prefix}{name} = {number}," + (f" /* {meaning} */" if meaning else ""))
    return "enum {\n" + "\n".join(lines) + "\n};\n"


def header() -> str:
    """The whole file."""
    return f"""\
/* Written by tests/native/constants.py from the Python side, which has the same numbers: do not edit it.
 * After a change there: python -m tests.native.constants */
#ifndef REPLAYDBG_CONSTANTS_H
#define REPLAYDBG_CONSTANTS_H

/* clang-format off */
#define FORMAT_NUMBER {encode.FORMAT}

/* What a value begins with: docs/reference/format.md, section 3. */
{_enum("TAG_", numbers(encode, NO_TAGS))}
/* Records that define what later ones refer to. */
{_enum("DEFINES_", {name: number for number, name in enumerate(DEFINITIONS)})}
/* Control records. */
{_enum("CONTROL_", controls() | {"KINDS": CONTROL_KINDS})}
/* How many fingerprints a place in pure computation has at most. */
#define PLACE_LEVELS {stream.PLACE_LEVELS}
#define PLACE_WITH_CONTENTS {stream.PLACE_WITH_CONTENTS}

/* What a row of the gate table says besides its name. */
{_enum("GATE_", numbers(row, NO_FLAGS), meanings(row))}
/* What a process of a group sends and receives: section 4.6. */
#define TRANSFERS_FORMAT {transfers.TRANSFERS_FORMAT}
#define TRANSFER_SLOT {transfers.SLOT}
#define TRANSFER_ADDRESS {transfers.ADDRESS}
#define TRANSFER_PASSED {transfers.PASSED}
{_enum("TRANSFER_", {name: getattr(transfers, name) for name in TRANSFER_FLAGS}, meanings(transfers))}
{_enum("ENDPOINT_", endpoint_kinds())}/* clang-format on */

#endif
"""


if __name__ == "__main__":
    HEADER.write_text(header(), encoding="utf-8")
