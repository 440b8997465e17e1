"""Write the first files of the recording of a program that goes on from a checkpoint."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import replaydbg
from replaydbg.classes import NamedTuple
from replaydbg.errors import CannotRecord
from replaydbg.gates.row import Row
from replaydbg.gates.table import gate_table, table_digest
from replaydbg.launch import interpreter
from replaydbg.launch.program_python import this_one
from replaydbg.log.coding.codec import decode_value
from replaydbg.log.entries.logfile import LOG_HEADER, read_log_header
from replaydbg.native import check_interpreter, core_file
from replaydbg.record.collector_start import first_counts
from replaydbg.record.snapshot_orders import NO_SNAPSHOTS
from replaydbg.record.start import WantedProgram, continuing_command, gate_data, write_files
from replaydbg.record.target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from replaydbg.log.json_data import ContinuedData, HeaderData

_ONCE = ("resumed", "branch")
"""Fields of the header that hold for the log before only."""
_OF_ONE_START = ("plainly", "next_dir", "killed_at")
"""Orders that hold for one start of the process."""


class Place(NamedTuple):
    """Where the program was recorded, and how."""

    live: str
    """The live directory of the recording so far, whose name the new one gets."""
    following: str
    """The directory of the new one, with the saved state."""
    max_size: int
    """Of each log, in bytes; 0: no limit."""
    stops_on_deadlock: bool
    page: str
    """The group's page; empty: it is in no group."""
    library: str
    """By which programs that it starts join the group; empty: they do not."""


class ContinuedStart(NamedTuple):
    """How the program is started."""

    command: list[str]
    environment: dict[str, str]
    directory: str
    """Its working directory."""
    ignored: list[int]
    """The signals that it ignores."""


def continued_start(place: Place) -> ContinuedStart:
    """Write the header and the core's orders into the new directory; return how the program is started.

    It is started as it was at first: with the same command line, environment and working directory. Raises
    CannotRecord, NotBuilt, UnsupportedPython, and OSError.
    """
    check_interpreter()
    live, following = Path(place.live), Path(place.following)
    before: HeaderData = json.loads((live / "header.json").read_bytes())
    if before["tool"] != replaydbg.__version__:
        reason = f"replaydbg {before['tool']} was replaced by {replaydbg.__version__} meanwhile"
        raise CannotRecord(place.live, reason)
    orders = _first_orders(live)
    table = _table(orders)
    header = _header(before, live, table)
    flags = header["python"]["flags"]
    options = interpreter.split_options([str(each) for each in flags] if isinstance(flags, list) else [])
    target = Target(header["kind"], header["target"], header["argv"], [], header["path0"])
    executable = str(header["python"]["executable"])
    start = write_files(
        WantedProgram(target, options, header["env"], this_one()),
        following,
        header,
        table,
        _orders(place, header, orders),
        core=core_file(interpreter.soabi()),
        name=executable,
    )
    ignored = [int(number) for number, state in header["signals"].items() if state == "ignored"]
    return ContinuedStart(start.command, start.environment, header["cwd"], ignored)


def _header(before: HeaderData, live: Path, table: list[Row]) -> HeaderData:
    header: HeaderData = {key: value for key, value in before.items() if key not in _ONCE}  # type: ignore[assignment]
    header["created"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    header["continued"] = continued = _continued(before, live, header["created"])
    first = str(before.get("run", "")).partition("+")[0]
    header["run"] = f"{first}+{continued['number']}"
    header["gates"] = gate_data(table)
    header["gates_digest"] = table_digest(table)
    header["fds"] = interpreter.inherited_fds()
    header["stdio"] = [interpreter.stream_kind(number) for number in range(3)]
    header.pop("stdin_offset", None)
    if (offset := interpreter.input_offset(0)) is not None:
        header["stdin_offset"] = offset
    header["collector"] = list(first_counts(header["chaos"]))
    return header


def _continued(before: HeaderData, live: Path, when: str) -> ContinuedData:
    with (live / "log").open("rb") as file:
        log = read_log_header(file.read(LOG_HEADER))
    last = before.get("continued")
    times = os.times()
    return {
        "number": 1 + (last["number"] if last is not None else 0),
        "when": when,
        "events": (log.crossings if log is not None else 0) + (last["events"] if last is not None else 0),
        "cpu_ms": int(1000 * (times.user + times.system)),
    }


def _first_orders(live: Path) -> dict[str, Any]:
    """Return the orders of the process so far; a resumed one has none there."""
    try:
        data = (live / "boot").read_bytes()
        given = decode_value(data) if data else {}
    except FileNotFoundError:
        return {}
    return {str(key): value for key, value in given.items()} if isinstance(given, dict) else {}


def _table(before: dict[str, Any]) -> list[Row]:
    """Return the rows so far, those of other packages included: where these were found is not known any more."""
    rows = before.get("gates")
    return [Row(*each) for each in rows] if rows else gate_table(sys.path)


def _orders(place: Place, header: HeaderData, before: dict[str, Any]) -> dict[str, object]:
    group = {"group": os.fsencode(place.page), "process": header.get("process", 1)} if place.page else {}
    joins = {"joins": os.fsencode(place.library)} if place.library else {}
    return {
        "snapshots": NO_SNAPSHOTS.as_boot(),
        "trace": None,
        **{key: value for key, value in before.items() if key not in _OF_ONE_START},
        "mode": "record",
        "max_size": place.max_size,
        "stop_on_deadlock": place.stops_on_deadlock,
        "durable": header["durable"],
        "continuing": continuing_command(),
        "live_dir": os.fsencode(place.live),
        "next_dir": os.fsencode(place.following),
        **group,
        **joins,
    }
