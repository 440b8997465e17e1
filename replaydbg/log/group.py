"""A group of processes on disk: a program and the children that it forked, each a recording of its own.

`NAME.rdbgs/` holds `1.rdbg`, `2.rdbg` ... (or live directories) and `group.json`, with a row for each process. While
processes of the group run, the rows are in the file `page`, which they share; see docs/reference/format.md.
"""
# Longer than other modules: everything that reads or writes the rows of a group knows their layout.

from __future__ import annotations

import json
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import Corrupt, NoSuchRecording, UnfinishedGroup
from replaydbg.log.allowance import load_json
from replaydbg.log.files import DataFile, forget_signature
from replaydbg.log.live_cuts import MOST_CUTS, LiveCut, checked, read_live_cuts
from replaydbg.log.signature import verified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GROUP = ".rdbgs"
"""The suffix of a group's directory."""
FACTS, PAGE, WAKE, ORDERS = "group.json", "page", "wake", "orders.json"
"""Files in it: the rows; the same while it is written; the fifo that wakes the process that seals recordings; what a
Python that joins has to know.
"""
HIDDEN_PAGE = ".page"
"""The name of the page while the group becomes an ordinary recording, so that nobody joins."""

MOST_PROCESSES = 1000
"""Number of processes that get a row, and may be recorded. More are counted."""

HOW = ("unknown", "program", "fork", "other", "python", "exec", "joined")
"""How a process was started, by its number in the page (log/page.h).

By `record`, by a fork, as another program, as a Python, by a process that replaced itself, or by `record --join`.
"""
WHY_NOT = (
    "",
    "the recordings of the group had reached --max-size",
    "its recording could not be created",
    "forked more than 50 levels deep",
    "another program",
    "it ended before its recording began",
    "its program comes from a terminal or from standard input",
    "it is a Python without a program to run",
    "replaydbg was not built for its Python",
    "it is a replaydbg command",
)
"""Why a process is not recorded, by its number in the page (log/page.h)."""
TOO_LARGE, NO_ROOM, IS_OTHER, HAS_NOT_BEGUN, IS_TYPED, FINDS_NOTHING, IS_NOT_BUILT_FOR, IS_OURS = 1, 2, 4, 5, 6, 7, 8, 9
STATUS_FROM = ("", "parent", "itself")
"""Who knows the exit status, by its number in the page."""

_MAGIC = b"RDBGGRP\0"
_HEAD = struct.Struct("<8sIIQQ32x")
_ROW = struct.Struct("<QIIIiiII4xQ16x")
_AT_TICKETS = 32
"""Where in the head the clock is."""
_AT_PID = 20
"""Where in a row the process id is."""
_AT_STATUS = 24
"""Where in a row the status is; who knows it follows."""
_FORMAT = 1
LIMIT = 4 << 20
"""The longest `group.json` that is read."""


class GroupProcess(NamedTuple):
    """One process of a group."""

    number: int
    """From 1, by birth."""
    pid: int
    """Its process id; 0: unknown."""
    parent: int
    """The number of its parent; 0: the launcher."""
    event: int
    """The event of its parent at which it was started; 0: the launcher started it."""
    how: str
    """One of `HOW`."""
    argv: list[str] | None
    """The program and its arguments; None: unknown."""
    has_ended: bool
    """Whether it is known to have ended."""
    status: int | None
    """Its exit code, or minus the number of the signal that ended it; None: unknown."""
    status_from: str
    """Who knows the status: `parent`, `itself`, or `system`; empty: nobody."""
    recording: str | None
    """The name of its recording in the directory; None: it is not recorded."""
    why_not: str
    """Why it is not recorded, or why its recording is not sealed."""
    waited: int = 0
    """The event of its parent by which it had ended, as the parent learned by a wait; 0: unknown."""


class Group(NamedTuple):
    """The processes of a group."""

    identity: str
    """128 random bits, which its recordings have, too."""
    processes: list[GroupProcess]
    """By number."""
    more: int
    """Number of processes without a row."""
    is_complete: bool
    """Whether all of its recordings are sealed, or cannot be."""
    cuts: tuple[LiveCut, ...] = ()
    """The live cuts that were taken, in order."""


def new_page(path: Path, max_size: int) -> None:
    """Write the page of a new group, whose first process has number 1. Raises OSError."""
    size = _HEAD.size + MOST_PROCESSES * _ROW.size
    with path.open("xb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        file.write(_HEAD.pack(_MAGIC, MOST_PROCESSES, 1, 0, max_size))
        file.write(_ROW.pack(0, 0, HOW.index("program"), 0, 0, 0, 0, 0, 0))


def is_recorded(row: GroupProcess) -> bool:
    """Whether a process is recorded, or is about to be."""
    return bool(row.pid) and (bool(row.recording) or row.why_not == WHY_NOT[HAS_NOT_BEGUN])


def is_of_several(group: Group) -> bool:
    """Whether more than one process of a group was recorded."""
    return sum(each.recording is not None for each in group.processes) > 1


def is_starting(row: GroupProcess) -> bool:
    """Whether a process is going to be recorded, but its recording has not begun."""
    return not row.has_ended and row.why_not == WHY_NOT[HAS_NOT_BEGUN]


def reasons_of(rows: Sequence[GroupProcess], more: int) -> dict[str, int]:
    """Return why processes are not recorded, each with their number; `more` have no row."""
    reasons: dict[str, int] = {}
    for row in rows:
        if not row.recording and not is_starting(row):
            reasons[row.why_not] = reasons.get(row.why_not, 0) + 1
    if more:
        reasons["too many processes"] = more
    return reasons


def page_rows(directory: Path, name: str = PAGE) -> tuple[list[GroupProcess], int]:
    """Return the rows of a group that is being written, and the number of processes without one.

    `name` is that of its page. Raises OSError, or Corrupt.
    """
    rows, more = _all_rows(directory, name)
    return [each for each in rows if not _is_unborn(each)], more


def lock_page(page: int) -> bool:
    """Keep others from joining while the page is open; False if somebody is about to join, or has just done so.

    Who joins by `record --join` holds it from before it looks at the group until its program has ended.
    """
    import fcntl

    try:
        fcntl.flock(page, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def has_unborn(directory: Path, name: str = PAGE) -> bool:
    """Whether a process is about to be forked, or its parent was killed before it was. Raises OSError, or Corrupt."""
    return any(map(_is_unborn, _all_rows(directory, name)[0]))


def _is_unborn(row: GroupProcess) -> bool:
    return not row.pid and row.how in ("unknown", "fork")


def _all_rows(directory: Path, name: str = PAGE) -> tuple[list[GroupProcess], int]:
    data = (directory / name).read_bytes()
    magic, limit, count, *_ = _HEAD.unpack_from(data) if len(data) >= _HEAD.size else (b"", 0, 0)
    if magic != _MAGIC or len(data) < _HEAD.size + limit * _ROW.size:
        raise Corrupt(str(directory), "its page of processes is damaged")
    rows = []
    for number in range(1, min(limit, count) + 1):
        row = _ROW.unpack_from(data, _HEAD.size + (number - 1) * _ROW.size)
        if not row[7]:  # it was never made
            rows.append(_row(directory, number, row))
    return rows, max(count - limit, 0)


def _row(directory: Path, number: int, row: tuple[int, ...]) -> GroupProcess:
    event, parent, how, why_not, pid, status, source, _, waited = row
    reason = WHY_NOT[why_not] if why_not < len(WHY_NOT) else "unknown"
    return GroupProcess(
        number,
        pid,
        parent,
        event,
        HOW[how] if how < len(HOW) else HOW[0],
        None,
        bool(source) or (directory / f"{number}.rdbg").exists() or (how == HOW.index("other") and not pid),
        status if source else None,
        STATUS_FROM[source] if source < len(STATUS_FROM) else "",
        None if reason else f"{number}.rdbg",
        reason,
        waited,
    )


def may_grow(directory: str) -> bool:
    """Whether the recordings of the group have not reached their limit. Raises OSError."""
    fd = os.open(f"{directory}/{PAGE}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        *_, size, limit = _HEAD.unpack(os.read(fd, _HEAD.size))
    finally:
        os.close(fd)
    return not limit or int(size) < int(limit)


def continue_page(directory: Path, rows: Sequence[GroupProcess], tickets: int) -> None:
    """Write the rows of a group that goes on into its new page; the clock goes on after `tickets`. Raises OSError.

    Numbers without a row are those of processes that do not exist in it.
    """
    by_number = {row.number: row for row in rows}
    count = max(by_number)
    with (directory / PAGE).open("r+b", buffering=0) as page:
        magic, limit, _, size, max_size = _HEAD.unpack(page.read(_HEAD.size))
        page.seek(_AT_TICKETS)
        page.write(struct.pack("<Q", tickets))
        for number in range(1, count + 1):
            page.seek(_HEAD.size + (number - 1) * _ROW.size)
            page.write(_packed_row(by_number.get(number)))
        page.seek(0)  # the rows first: whoever sees the count finds them
        page.write(struct.pack("<8sIIQQ", magic, limit, count, size, max_size))


def _packed_row(row: GroupProcess | None) -> bytes:
    if row is None:
        return _ROW.pack(0, 0, 0, 0, 0, 0, 0, 1, 0)
    why_not = WHY_NOT.index(row.why_not) if row.why_not in WHY_NOT else NO_ROOM
    source = 0 if row.status is None else STATUS_FROM.index("parent")
    numbers = (row.event, row.parent, HOW.index(row.how), why_not if row.recording is None else 0)
    return _ROW.pack(*numbers, row.pid, row.status or 0, source, 0, row.waited)


def write_pid(directory: Path, number: int, pid: int) -> None:
    """Write the process id of a process into its row. Raises OSError."""
    with (directory / PAGE).open("r+b", buffering=0) as page:
        page.seek(_HEAD.size + (number - 1) * _ROW.size + _AT_PID)
        page.write(struct.pack("<i", pid))


def write_status(directory: Path, number: int, status: int) -> None:
    """Write how a process ended into its row, as its parent does: exit code, or minus a signal. Raises OSError."""
    row = _HEAD.size + (number - 1) * _ROW.size
    with (directory / PAGE).open("r+b", buffering=0) as page:
        page.seek(row + _AT_STATUS)
        page.write(struct.pack("<i", status))
        page.write(struct.pack("<I", STATUS_FROM.index("parent")))


def wake_sealer(directory: Path) -> bool:
    """Wake the process that seals the recordings of a group; return whether there is one."""
    try:
        fd = os.open(directory / WAKE, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False  # nobody reads it
    try:
        with suppress(BlockingIOError):  # it has many reasons to look
            os.write(fd, b"\0")
    except BrokenPipeError:
        return False  # it has just ended
    finally:
        os.close(fd)
    return True


def write_group(directory: Path, group: Group) -> None:
    """Write `group.json` as a whole. Raises OSError."""
    partial = directory / f".{FACTS}.{os.getpid()}"
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(group_json(group))
    partial.replace(directory / FACTS)
    forget_signature(directory / FACTS)


def group_json(group: Group) -> bytes:
    """Return the content of `group.json`."""
    data = {
        "format": _FORMAT,
        "group": group.identity,
        "complete": group.is_complete,
        "more": group.more,
        "processes": [process_facts(each) for each in group.processes],
        **({"cuts": [each._asdict() for each in group.cuts]} if group.cuts else {}),
    }
    return json.dumps(data, indent=1).encode()


def process_facts(process: GroupProcess) -> dict[str, object]:
    """Return the JSON of one process."""
    facts = process._asdict()
    return {("ended" if name == "has_ended" else name): value for name, value in facts.items()}


def parse_group(directory: Path, data: bytes) -> Group:
    """Return the group that the bytes of a `group.json` describe; `directory` is for messages. Raises Corrupt."""
    if len(data) > LIMIT:
        raise Corrupt(str(directory), f"its {FACTS} is longer than {LIMIT} bytes")
    try:
        return _checked(directory, load_json(data))
    except ValueError as error:
        raise Corrupt(str(directory), f"its {FACTS} cannot be read") from error


def read_group(directory: Path) -> Group:
    """Return the group in a directory. Raises UnfinishedGroup, NoSuchRecording, NotARecording, or Corrupt."""
    group = _read_facts(directory)
    if group.is_complete:
        return group
    try:
        rows, more = page_rows(directory)
    except OSError:
        return _read_facts(directory)  # it has been completed meanwhile
    known = {each.number: each for each in group.processes}
    rows = [_merged(each, known.get(each.number)) for each in rows]
    return group._replace(processes=rows, more=more, cuts=tuple(read_live_cuts(directory)))


def _read_facts(directory: Path) -> Group:
    try:
        with DataFile(directory / FACTS, follow=False) as file:
            verified(file.path, file.fileno())
            return parse_group(directory, file.read(0, LIMIT + 1))
    except NoSuchRecording:
        raise (UnfinishedGroup if directory.is_dir() else NoSuchRecording)(str(directory)) from None


def _merged(row: GroupProcess, known: GroupProcess | None) -> GroupProcess:
    """Return the row of the page with what only the process that seals knew."""
    if known is None:
        return row
    if row.status is None and known.status is not None:
        row = row._replace(status=known.status, status_from=known.status_from)
    if not known.has_ended:  # the page is newer
        return row._replace(argv=known.argv)
    return row._replace(argv=known.argv, has_ended=True, recording=known.recording, why_not=known.why_not)


_TYPES: dict[str, tuple[type, ...]] = {
    "number": (int,),
    "pid": (int,),
    "parent": (int,),
    "event": (int,),
    "how": (str,),
    "argv": (list, type(None)),
    "ended": (bool,),
    "status": (int, type(None)),
    "status_from": (str,),
    "recording": (str, type(None)),
    "why_not": (str,),
    "waited": (int,),
}


def _checked(directory: Path, data: Any) -> Group:
    if not isinstance(data, dict) or type(data.get("format")) is not int:
        raise Corrupt(str(directory), f"its {FACTS} is not that of a group")
    if data["format"] > _FORMAT:
        raise Corrupt(str(directory), f"its {FACTS} has format {data['format']}, which this version does not know")
    rows, identity, more = data.get("processes"), data.get("group"), data.get("more")
    if not isinstance(rows, list) or type(identity) is not str or type(more) is not int or len(rows) > MOST_PROCESSES:
        raise Corrupt(str(directory), f"its {FACTS} has an invalid field")
    processes: list[GroupProcess] = []
    for row in rows:
        process = _process(directory, row)
        before = processes[-1].number if processes else 0
        # A parent is older than its children: so nothing is its own ancestor.
        if process.number <= before or not 0 <= process.parent < process.number:
            raise Corrupt(str(directory), f"its process {process.number} has an impossible number or parent")
        processes.append(process)
    return Group(identity, processes, max(more, 0), data.get("complete") is True, _cuts(directory, data.get("cuts")))


def _cuts(directory: Path, rows: Any) -> tuple[LiveCut, ...]:
    """Return the live cuts; groups of before have none."""
    found = []
    for row in rows[:MOST_CUTS] if isinstance(rows, list) else ():
        cut = checked(*map(row.get, LiveCut._fields)) if isinstance(row, dict) else None
        if cut is None:
            raise Corrupt(str(directory), f"its {FACTS} has an invalid cut")
        found.append(cut)
    return tuple(found)


def _process(directory: Path, row: Any) -> GroupProcess:
    if not isinstance(row, dict):
        raise Corrupt(str(directory), f"its {FACTS} has an invalid row")
    row.setdefault("waited", 0)  # groups of before have no such field
    for name, kinds in _TYPES.items():
        value = row.get(name)
        if name not in row or not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise Corrupt(str(directory), f"its {FACTS} has a row with an invalid {name!r}")
    number, recording, argv = row["number"], row["recording"], row["argv"]
    if recording not in (None, f"{number}.rdbg") or (argv and not all(type(each) is str for each in argv)):
        raise Corrupt(str(directory), f"its process {number} has an invalid recording or argv")
    fields = {name: row[name] for name in _TYPES if name != "ended"}
    return GroupProcess(**fields, has_ended=row["ended"])


def size_of_group(directory: Path) -> int:
    """Return how many bytes on the disk a group takes, with what its recordings have in common."""
    size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):  # it is being sealed
                # A log that is not sealed is longer than the space that it takes.
                size += os.lstat(f"{folder}/{name}").st_blocks * 512
    return size


def group_directory(path: Path) -> Path | None:
    """Return the directory of the group that the recording at `path` is in; None: it is in none."""
    parent = path.absolute().parent
    return parent if parent.name.endswith(GROUP) and path.name.partition(".")[0].isdigit() else None


def process_number(path: Path) -> int:
    """Return the number of the process whose recording is at `path`, in the directory of a group."""
    return int(path.name.partition(".")[0])


def name_in_group(path: Path) -> str:
    """Return such as `run-12/3` for the recording of a process in a group; empty for any other recording."""
    directory = group_directory(path)
    return f"{directory.name.removesuffix(GROUP)}/{path.name.partition('.')[0]}" if directory is not None else ""
