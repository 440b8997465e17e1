"""The resources of a process as tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from replaydbg.events import linux
from replaydbg.events.records import Site
from replaydbg.events.show import show_value
from replaydbg.render.paths import short_path
from replaydbg.render.tables import Table, more_text
from replaydbg.resources.kinds import (
    ChildProcess,
    Descriptor,
    MakingCall,
    OpenedDirectory,
    OpenedEpoll,
    OpenedEventFd,
    OpenedFile,
    OpenedMemory,
    OpenedOther,
    OpenedPidFd,
    OpenedPipe,
    OpenedSocket,
    OpenedTerminal,
    OpenedTimerFd,
    OpenResource,
    Resources,
    RunningThread,
    Unknown,
)
from replaydbg.resources.unclosed import Unclosed

UNKNOWN = "?"
MOST_ROWS = 50
"""Rows of each table besides that of descriptors."""
MOST_NOTES = 8
"""Reasons that are listed below a table; `--json` has all."""


class _Cells:
    """Turns values into cells, and keeps the reasons of those that are not known."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self.reasons: dict[str, list[int]] = {}
        """Each with the descriptors that it is about, if it is about any."""
        self.about: tuple[int, ...] = ()
        """The descriptors of the row that is made."""

    def known(self, value: object, show: Callable[[Any], str] = str) -> str:
        """Return a value as text; UNKNOWN, with its reason kept, if it is not known."""
        if isinstance(value, Unknown):
            self.note(value.reason, self.about)
            return UNKNOWN
        return "" if value is None else show(value)

    def path(self, value: object) -> str:
        """Return a path as text."""
        return self.known(value, partial(short_path, cwd=self._cwd))

    def site(self, site: Site | None) -> str:
        """Return the line of a call."""
        if site is None or site.file is None:
            return "" if site is None else "(no Python frame)"
        return f"{short_path(site.file, self._cwd)}:{site.line}"

    def origin(self, origin: MakingCall) -> str:
        """Return the event that made something, with its line."""
        if not origin.event:
            return "at the start"
        return f"event {origin.event:,}  {self.site(origin.site)}".rstrip()

    def numbers(self, descriptors: Iterable[Descriptor]) -> str:
        """Return descriptors as text; those in doubt with a question mark."""
        cells = []
        for each in descriptors:
            if each.doubt:
                self.note(each.doubt, (each.number,))
            cells.append(f"{each.number}{'?' if each.doubt else ''}")
        return " ".join(cells)

    def note(self, reason: str, numbers: Iterable[int]) -> None:
        """Keep a reason, with the descriptors that it is about."""
        known = self.reasons.setdefault(reason, [])
        known += [each for each in numbers if each not in known]

    def notes(self) -> tuple[str, ...]:
        """Return the reasons that were kept, as sentences."""
        found = [f"? {_of_descriptors(numbers)}{reason}." for reason, numbers in self.reasons.items()]
        left = len(found) - MOST_NOTES
        return (*found[:MOST_NOTES], *([f"{left:,} more reasons are in --json."] if left > 0 else []))


def _of_descriptors(numbers: list[int]) -> str:
    if not numbers:
        return ""
    shown = ", ".join(str(each) for each in numbers[:MOST_NOTES])
    more = f" and {len(numbers) - MOST_NOTES:,} more" if len(numbers) > MOST_NOTES else ""
    return f"descriptor{'s' * (len(numbers) > 1)} {shown}{more}: "


def resources_tables(found: Resources, cwd: str) -> list[Table]:
    """Return the resources of a moment as tables; empty kinds are left out. `cwd` is where the program was started."""
    return [table for table in _tables(found, cwd) if table.rows]


def unclosed_tables(found: Unclosed, cwd: str) -> list[Table]:
    """Return what was opened between two moments and not closed."""
    cells = _Cells(cwd)
    rows = []
    for line in found.lines:
        for index, (descriptor, resource) in enumerate(line.opened):
            place = cells.site(descriptor.origin.site) or "(no recorded call)"
            count = f"{len(line.opened):,}" if not index else ""
            what = f"{_kind(resource)}  {_what(resource, cells)}".rstrip()
            number = cells.numbers([descriptor])
            rows.append((count, place if not index else "", number, what, f"{descriptor.origin.event:,}"))
    title = f"Opened between event {found.earlier:,} and event {found.later:,}, and not closed: {found.count:,}"
    title += f", and {found.doubtful:,} that may be closed" if found.doubtful else ""
    notes = (f"Of those that were open before, {len(found.closed):,} were closed.", *cells.notes())
    columns = ("count", "line", "fd", "what", "event")
    tables = [Table(title, columns, tuple(rows), right=("count", "event"), notes=notes)]
    if found.closed:
        tables.append(_closed(found, _Cells(cwd)))
    if found.children:
        tables.append(_children(found.children, cells, "Children that were started, and not waited for"))
    return tables


def _closed(found: Unclosed, cells: _Cells) -> Table:
    rows = tuple(
        (
            cells.numbers([descriptor]),
            f"{_kind(resource)}  {_what(resource, cells)}".rstrip(),
            f"{descriptor.origin.event:,}" if descriptor.origin.event else "start",
            cells.site(descriptor.origin.site),
        )
        for descriptor, resource in found.closed[:MOST_ROWS]
    )
    more = more_text(max(len(found.closed) - MOST_ROWS, 0), "`--json` has all")
    title = f"Open after event {found.earlier:,}, and closed by event {found.later:,}"
    columns = ("fd", "what", "event", "opened by")
    return Table(title, columns, rows, right=("event",), more=more, notes=cells.notes())


def _tables(found: Resources, cwd: str) -> Iterator[Table]:
    cells = _Cells(cwd)
    yield Table(
        f"Open descriptors after event {found.event:,}",
        ("fd", "kind", "mode", "what", "offset", "event", "line"),
        tuple(_row(each, cells, found.open_flags) for each in found.opened),
        right=("offset", "event"),
        notes=cells.notes(),
    )
    for make in _OTHERS:
        table = make(found, _Cells(cwd))
        left = len(table.rows) - MOST_ROWS
        more = more_text(max(left, 0), "`--json` has all")
        yield replace(table, rows=table.rows[:MOST_ROWS], more=more)


def _row(resource: OpenResource, cells: _Cells, known: linux.OpenFlags) -> tuple[str, ...]:
    handle, origin = resource.handle, resource.handle.origin
    cells.about = handle.numbers
    offset = cells.known(resource.offset) if isinstance(resource, OpenedFile | OpenedMemory) else ""
    mode = cells.known(handle.flags, _access)
    flags = _flags(handle.flags, known) if not isinstance(resource, OpenedSocket) else ()
    what = " ".join([_what(resource, cells), *flags])
    event = f"{origin.event:,}" if origin.event else "start"
    return cells.numbers(handle.descriptors), _kind(resource), mode, what, offset, event, cells.site(origin.site)


def _access(flags: int) -> str:
    return {linux.O_RDONLY: "r", linux.O_WRONLY: "w"}.get(flags & linux.O_ACCMODE, "rw")


def _flags(flags: int | Unknown, known: linux.OpenFlags) -> list[str]:
    names = {linux.O_APPEND: "append", linux.O_NONBLOCK: "non-blocking", known.direct: "direct"}
    return [name for bit, name in names.items() if isinstance(flags, int) and flags & bit]


def _kind(resource: OpenResource) -> str:
    return (
        resource.kind if isinstance(resource, OpenedOther) else type(resource).__name__.removeprefix("Opened").lower()
    )


def _what(resource: OpenResource, cells: _Cells) -> str:
    """Return what a descriptor refers to."""
    match resource:
        case OpenedFile():
            return cells.path(resource.absolute) + (" (deleted)" if resource.is_deleted else "")
        case OpenedDirectory():
            return cells.path(resource.absolute)
        case OpenedPipe():
            other = f", other end {' '.join(map(str, resource.other_end))}" if resource.other_end else ""
            return f"{resource.path or ''} {resource.side} end{other}".strip()
        case OpenedSocket():
            return _socket(resource, cells)
        case OpenedTerminal():
            return resource.side or resource.path or ""
        case OpenedEpoll():
            return cells.known(resource.watched, lambda all_: "watches " + " ".join(str(each.number) for each in all_))
        case OpenedEventFd():
            return f"counter {cells.known(resource.value)}"
        case OpenedTimerFd():
            return "set" if resource.settings else "not set"
        case OpenedPidFd():
            return f"process {resource.pid}"
        case OpenedMemory():
            return resource.name
        case OpenedOther():
            cells.note(resource.reason, cells.about)
            return UNKNOWN


def _socket(one: OpenedSocket, cells: _Cells) -> str:
    words = [cells.known(one.family, _family), cells.known(one.type, _type), one.state.value]
    if one.bound is not None:
        words.append(cells.known(one.bound, _address))
    if one.peer is not None:
        words.append(f"peer {cells.known(one.peer, _address)}")
    if one.pair is not None:
        words.append(f"pair with {' '.join(map(str, one.pair)) or 'one that is closed here'}")
    if one.backlog is not None:
        words.append(f"backlog {one.backlog}")
    if one.tls is not None:
        words.append(f"TLS {one.tls.hostname or ''}".strip())
    if one.is_non_blocking is True:
        words.append("non-blocking")
    return " ".join(words)


def _family(value: int) -> str:
    return linux.FAMILIES.get(value, f"family {value}").removeprefix("AF_").lower()


def _type(value: int) -> str:
    return linux.SOCKET_TYPES.get(value, f"type {value}").removeprefix("SOCK_").lower()


def _address(value: object) -> str:
    if isinstance(value, tuple) and len(value) >= 2 and isinstance(value[0], str) and isinstance(value[1], int):
        return f"[{value[0]}]:{value[1]}" if ":" in value[0] else f"{value[0]}:{value[1]}"
    return show_value(value)


def _locks(found: Resources, cells: _Cells) -> Table:
    rows = []
    for each in found.locks:
        end = f" bytes {each.start:,} to {each.start + each.length:,}" if each.length else f" from byte {each.start:,}"
        what = f"{cells.path(each.path)}{end if each.kind != 'flock' else ''}"
        how = "exclusive" if each.is_exclusive else "shared"
        waiting = [
            thread.name
            for thread in found.threads
            if thread.waits_for in _LOCKS and thread.descriptor in each.descriptors
        ]
        numbers = " ".join(map(str, each.descriptors))
        rows.append((each.kind, how, what, numbers, ", ".join(waiting), cells.origin(each.origin)))
    columns = ("lock", "mode", "file", "fd", "waits for it", "locked by")
    return Table("File locks held", columns, tuple(rows), notes=cells.notes())


_LOCKS = ("fcntl.flock", "fcntl.lockf", "fcntl.fcntl", "posix.lockf")


def _threads(found: Resources, cells: _Cells) -> Table:
    waiting = [each for each in found.threads if each.waits_for]
    rows = tuple((str(each.lane), each.name, _wait(each), _waits_at(each, cells)) for each in waiting)
    note = "Which thread holds a lock of `threading` is not recorded: see `threads` at the prompt."
    return Table("Threads that wait", ("thread", "name", "waits for", "line"), rows, notes=(note,))


def _wait(thread: RunningThread) -> str:
    at = f" (descriptor {thread.descriptor})" if thread.descriptor is not None else ""
    return f"{thread.waits_for}{at}" if thread.waits_for != "lock" else "a lock, condition or queue"


def _waits_at(thread: RunningThread, cells: _Cells) -> str:
    place = cells.site(thread.site)
    return f"after {place}" if thread.waits_for == "lock" and place else place


def _timers(found: Resources, cells: _Cells) -> Table:
    rows = []
    for each in found.timers:
        interval = f"{each.interval:g} s" if each.interval else ""
        left = cells.known(each.remaining, lambda seconds: f"{seconds:.3f} s")
        rows.append((each.kind, f"{each.seconds:g} s", interval, left, cells.origin(each.origin)))
    return Table("Timers", ("timer", "set to", "repeats", "left", "set by"), tuple(rows), notes=cells.notes())


def _signals(found: Resources, cells: _Cells) -> Table:
    rows = tuple((each.name, each.action, cells.origin(each.origin)) for each in found.signals)
    return Table("Signal handlers", ("signal", "action", "set by"), rows)


def _child_table(found: Resources, cells: _Cells) -> Table:
    return _children([each for each in found.children if not each.is_reaped], cells, "Children")


def _children(children: Iterable[ChildProcess], cells: _Cells, title: str) -> Table:
    rows = tuple(
        (str(each.pid), shlex.join(each.command) or "(forked)", cells.origin(each.origin)) for each in children
    )
    return Table(title, ("pid", "command", "started by"), rows)


def _databases(found: Resources, cells: _Cells) -> Table:
    rows = tuple(
        (cells.path(each.path), cells.known(each.transaction), cells.known(each.lock), cells.origin(each.origin))
        for each in found.databases
    )
    return Table("SQLite databases", ("file", "transaction", "lock", "opened by"), rows, notes=cells.notes())


def _semaphores(found: Resources, cells: _Cells) -> Table:
    rows = tuple(
        (each.name, each.kind, f"{cells.known(each.value)} of {each.maximum}", cells.origin(each.origin))
        for each in found.semaphores
    )
    return Table("Semaphores of multiprocessing", ("name", "kind", "free", "made by"), rows, notes=cells.notes())


def _mappings(found: Resources, cells: _Cells) -> Table:
    rows = tuple(
        (cells.path(each.path), cells.known(each.length), str(each.offset), cells.origin(each.origin))
        for each in found.mappings
    )
    note = "Whether a file still is mapped is not recorded."
    columns = ("file", "bytes", "from byte", "mapped by")
    return Table("Files mapped into memory", columns, rows, right=("bytes", "from byte"), notes=(note, *cells.notes()))


def _tls(found: Resources, cells: _Cells) -> Table:
    rows = tuple(
        (
            each.hostname or "",
            cells.known(each.is_server, lambda is_server: "server" if is_server else "client"),
            cells.origin(each.origin),
        )
        for each in found.tls
    )
    note = "Whether a session still exists is not recorded."
    return Table("TLS over buffers in memory", ("peer", "side", "made by"), rows, notes=(note, *cells.notes()))


def _tls_loads(found: Resources, cells: _Cells) -> Table:
    rows = tuple(
        (", ".join(cells.path(file) for file in each.files if file is not None), each.call, cells.origin(each.origin))
        for each in found.tls_loads
        if each.files
    )
    note = "Whether a context still exists is not recorded."
    return Table("Files of TLS contexts", ("file", "call", "loaded by"), rows, notes=(note, *cells.notes()))


_OTHERS = (_locks, _databases, _threads, _child_table, _timers, _signals, _semaphores, _mappings, _tls, _tls_loads)
