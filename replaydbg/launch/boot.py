"""The core's orders at its start, in both modes: one value, written into a file whose name it is given."""

from __future__ import annotations

import os
from collections.abc import Mapping

from replaydbg.gates.row import Row
from replaydbg.launch.interpreter import has_safe_path, held_warnings, split_options
from replaydbg.log.coding.encode import CHECKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def boot_values(header: Mapping[str, Any], table: list[Row], start: dict[str, str]) -> dict[str, Any]:
    """Return the core's fields in both modes; `start` is the environment with which the interpreter is started."""
    options = split_options(list(header["python"]["flags"]))
    target = header["target"]
    return {
        "gates": [tuple(row) for row in table],
        "kind": header["kind"],
        "target": os.fsencode(target) if header["kind"] == "script" else target,
        "argv": list(header["argv"]),
        "orig_argv": list(header["orig_argv"]),
        "path0": header["path0"],
        # Without the number of a process in its group: a child that is forked has another one.
        "name": str(header.get("name", "")).partition("/")[0],
        "environment": [(os.fsencode(name), os.fsencode(value)) for name, value in header["env"].items()],
        "start_ctype": os.fsencode(start["LC_CTYPE"]) if "LC_CTYPE" in start else None,
        # Recordings made before this option existed have no such field.
        "real_ids": bool(header.get("real_ids", False)),
        "chaos": header.get("chaos"),
        "run": str(header.get("run", "")),
        "has_state": "continued" in header,
        "checkpoint_events": _limit(header, "events"),
        "checkpoint_bytes": _limit(header, "bytes"),
        "collector": tuple(header.get("collector", ())),
        "ticks_by_checks": header.get("ticks") == CHECKS,
        "site": options.site,
        "isolated": options.isolated,
        "ignore_environment": options.ignore_environment,
        "safe_path": has_safe_path(header["env"], options),
        "warnings": held_warnings(header["env"], options),
        "terminal_input": list(header["stdio"][:2]) == ["tty", "tty"],
    }


def _limit(header: Mapping[str, Any], name: str) -> int:
    """Return a number of the header's `checkpoints`, which anybody may have written; 0: there is none."""
    found = header.get("checkpoints")
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, int) and 0 <= value < 1 << 62 else 0
