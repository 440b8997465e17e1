"""Follow what calls do to memory that others can see: files in memory, mappings, semaphores, databases of SQLite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from replaydbg.events import linux
from replaydbg.events.records import Event
from replaydbg.resources.descriptions import Description
from replaydbg.resources.event_values import argument, first, integer, items, number_of, whole
from replaydbg.resources.file_names import FileNode
from replaydbg.resources.kinds import FileMapping, ProcessSemaphore, Unknown
from replaydbg.resources.process_state import DatabaseFacts, ProcessState

_OPEN_DATABASE = 0x100 | 0x200
"""`SQLITE_OPEN_MAIN_DB` and `SQLITE_OPEN_TEMP_DB` (sqlite3.h)."""
_OPEN_READS_ONLY = 0x1
_OPEN_CREATES = 0x4
LOCK_NAMES = ("none", "shared", "reserved", "pending", "exclusive")
"""The levels of SQLite's locks, in their order (sqlite3.h)."""
_SHM_UNLOCK, _SHM_SHARED = 1, 4
_LOG_WRITER = 0
"""The lock of the index of a write-ahead log that its writer has (`WAL_WRITE_LOCK` in SQLite's wal.c)."""
_FIRST_READER = 3
_GUESSED = "SQLite opened it; its number is inferred"
_MAPPED = "a mapping keeps a copy of its descriptor, which is closed without an event; its number is inferred"
_MANY_MAPPINGS = 1000
_MAP_IS_WRITTEN = 2
"""The third part of what `mmap` returned: stores are written to the file (`MapKind` in memory/inside.h)."""
_RESIZED = Unknown("a map was resized while several were there, and the log does not show which one")
_NO_SEMAPHORE = Unknown("the log does not show which semaphore a call is of")


# ---- memory ----


def _memory(to: ProcessState, event: Event, *, flags: int, is_new: bool) -> None:
    name = argument(event, 0, "name")
    text = name if isinstance(name, str) else ""
    known = next((each for each in to.descriptions("memory") if each.path == text and each.node is not None), None)
    node = known.node if known is not None and not is_new else FileNode(text)
    made = Description("memory", to.origin(event), flags, text, node, offset=0)
    made.side = "shared" if event.gate == "_posixshmem.shm_open" else ""
    if is_new and node is not None:
        node.size = 0
    to.opened(number_of(event.outcome), made, event)


def _memfd(to: ProcessState, event: Event) -> None:
    _memory(to, event, flags=linux.O_RDWR, is_new=True)


def _open_shared(to: ProcessState, event: Event) -> None:
    flags = integer(argument(event, 1, "flags"))
    access = flags & linux.O_ACCMODE
    _memory(
        to, event, flags=access | to.open_flags.no_follow, is_new=bool(flags & linux.O_CREAT and flags & linux.O_EXCL)
    )


def _unlink_shared(to: ProcessState, event: Event) -> None:
    for each in to.descriptions("memory"):
        if each.path == argument(event, 0, "path"):
            each.is_unlinked = True


def _map(to: ProcessState, event: Event) -> None:
    number = number_of(argument(event, 0, "fileno"))
    description = to.used(number, event) if number >= 0 else None
    if description is None:
        return
    path = description.node.path if description.node is not None else Unknown("the descriptor has no path")
    length = whole(first(event.outcome))
    offset = integer(argument(event, 5, "offset"))
    size = length if length is not None else Unknown("the log does not show it")
    made = FileMapping(to.origin(event), path, size, offset, _is_written(event))
    if made.is_written and description.node is not None:
        description.node.has_hidden_stores = True
    if not argument(event, 9, "trackfd", True):
        to.mappings_without_copy.append(made)
        return
    to.mappings.append(made)
    to.numbers.guess(description, to.origin(event), _MAPPED)
    if len(to.mappings) > _MANY_MAPPINGS:
        to.live_mappings()


def _resize(to: ProcessState, event: Event) -> None:
    """`map.resize(size)`, which changes the size of the file, too. The event does not show which map it is of."""
    size = whole(argument(event, 0, "newsize"))
    candidates = [each for each in to.live_mappings() if each.is_written]  # others cannot be resized
    length = _RESIZED if size is None or len(candidates) > 1 else size
    to.mappings = [replace(each, length=length) if each in candidates else each for each in to.mappings]
    for each in candidates:
        node = next((d.node for d in to.open for n in d.numbers if to.numbers.made_by(n, each.origin)), None)
        if node is not None:
            node.size = length if isinstance(length, Unknown) else each.offset + length


def _is_written(event: Event) -> bool:
    """Whether stores in a map are written to its file; also if the recording is too old to show it."""
    outcome = items(event.outcome)
    return len(outcome) < 3 or outcome[2] == _MAP_IS_WRITTEN


# ---- semaphores ----


def _make_semaphore(to: ProcessState, event: Event) -> None:
    """`SemLock(kind, value, maxvalue, name, unlink)`."""
    kind, value, maximum = (integer(argument(event, index)) for index in range(3))
    name, unlinked = argument(event, 3, "name"), argument(event, 4, "unlink")
    if isinstance(name, str):
        what = "semaphore" if kind else "recursive lock"
        to.semaphores[name] = ProcessSemaphore(name, what, maximum, value, bool(unlinked), to.origin(event))
        _uses(to, event, name)


def _rebuild_semaphore(to: ProcessState, event: Event) -> None:
    """`SemLock._rebuild(handle, kind, maxvalue, name)`: one of another process."""
    kind, maximum, name = integer(argument(event, 1)), integer(argument(event, 2)), argument(event, 3)
    if isinstance(name, str):
        what = "semaphore" if kind else "recursive lock"
        value = Unknown("another process made it")
        to.semaphores[name] = ProcessSemaphore(name, what, maximum, value, True, to.origin(event))
        _uses(to, event, name)


def _uses(to: ProcessState, event: Event, name: str) -> None:
    if (endpoint := to.endpoints.get(event.number)) is not None:
        to.semaphore_names[endpoint] = name


def _change(to: ProcessState, event: Event, by: int) -> None:
    endpoint = to.endpoints.get(event.number)
    name = to.semaphore_names.get(endpoint, "") if endpoint is not None else ""
    if not name and len(to.semaphores) == 1:
        name = next(iter(to.semaphores))
    if not name:  # any of them
        to.semaphores = {each: replace(one, value=_NO_SEMAPHORE) for each, one in to.semaphores.items()}
        return
    one = to.semaphores[name]
    if one.kind == "recursive lock":
        to.semaphores[name] = replace(one, value=Unknown("how often its owner has acquired it is not recorded"))
    elif isinstance(one.value, int):
        to.semaphores[name] = replace(one, value=max(0, one.value + by))


def _acquire(to: ProcessState, event: Event) -> None:
    if event.outcome is not False:
        _change(to, event, -1)


def _release(to: ProcessState, event: Event) -> None:
    _change(to, event, 1)


# ---- SQLite ----


def _open_database(to: ProcessState, event: Event) -> None:
    """`vfs.open(path, flags, n)`."""
    path, flags = argument(event, 0), integer(argument(event, 1))
    if not isinstance(path, str) or integer(event.outcome, -1) < 0:
        return
    absolute = to.absolute(path) if path else ""
    facts = DatabaseFacts(
        to.origin(event), absolute if isinstance(absolute, str) else path, bool(flags & _OPEN_DATABASE)
    )
    access = linux.O_RDONLY if flags & _OPEN_READS_ONLY else linux.O_RDWR
    node = _guess(to, event, facts, path, access)
    if flags & _OPEN_CREATES:
        node.made = event.number
    to.databases.append(facts)


def _guess(to: ProcessState, event: Event, facts: DatabaseFacts, path: str, access: int) -> FileNode:
    node = to.names.node(to.absolute(path)) if path else FileNode("", is_deleted=True)
    node.has_hidden_stores = True
    made = Description("file", to.origin(event), access | to.open_flags.no_follow, path, node, offset=0, can_seek=True)
    facts.descriptions.append(made)
    to.guess(made, event, _GUESSED)
    return node


def database_of(to: ProcessState, event: Event) -> DatabaseFacts | None:
    """Return the file of a call, which the log has by its last name only; None: several have that."""
    name = argument(event, 0)
    found = [each for each in to.databases if each.path.rpartition("/")[2] == name]
    return found[0] if len(found) == 1 else None


def _close_database(to: ProcessState, event: Event) -> None:
    name = argument(event, 0)
    found = [each for each in to.databases if each.path.rpartition("/")[2] == name]
    if found:
        facts = found[-1]  # of several equal ones either is right, as long as nothing else differs
        to.databases.remove(facts)
        for number in [each for made in facts.descriptions for each in made.numbers]:
            to.release(number)


def _delete_database(to: ProcessState, event: Event) -> None:
    if isinstance(path := argument(event, 0), str) and event.outcome == 0:
        to.names.removed(to.absolute(path))


def _lock_database(to: ProcessState, event: Event) -> None:
    if event.outcome == 0 and (facts := database_of(to, event)) is not None:
        level = integer(argument(event, 1))
        facts.lock = max(facts.lock, level) if event.gate.endswith(".lock") else min(facts.lock, level)


def _lock_log(to: ProcessState, event: Event) -> None:
    """`file.shm_lock(name, first << 8 | count, flags)`: a lock of the index of a write-ahead log."""
    facts = database_of(to, event)
    if facts is None or integer(event.outcome) & 0xFF:
        return
    begin, flags = integer(argument(event, 1)) >> 8, integer(argument(event, 2))
    unlocks = bool(flags & _SHM_UNLOCK)
    if begin == _LOG_WRITER and not flags & _SHM_SHARED:
        facts.writes_log = not unlocks
    elif begin >= _FIRST_READER and flags & _SHM_SHARED:
        facts.reads_log = max(0, facts.reads_log + (-1 if unlocks else 1))


def _map_log(to: ProcessState, event: Event) -> None:
    facts = database_of(to, event)
    if facts is not None and not facts.has_index:
        facts.has_index = True
        _guess(to, event, facts, facts.path + "-shm", linux.O_RDWR)


def _unmap_log(to: ProcessState, event: Event) -> None:
    facts = database_of(to, event)
    if facts is not None and facts.has_index:
        facts.has_index = facts.writes_log = False
        for number in list(facts.descriptions.pop().numbers):
            to.release(number)


MEMORY_ACTIONS: dict[str, Callable[[ProcessState, Event], None]] = {
    "posix.memfd_create": _memfd,
    "_posixshmem.shm_open": _open_shared,
    "_posixshmem.shm_unlink": _unlink_shared,
    "mmap.mmap.__new__": _map,
    "mmap.mmap.resize": _resize,
    "_multiprocessing.SemLock.__new__": _make_semaphore,
    "_multiprocessing.SemLock._rebuild": _rebuild_semaphore,
    **dict.fromkeys(("_multiprocessing.SemLock.acquire", "_multiprocessing.SemLock.__enter__"), _acquire),
    **dict.fromkeys(("_multiprocessing.SemLock.release", "_multiprocessing.SemLock.__exit__"), _release),
    "_sqlite3.vfs.open": _open_database,
    "_sqlite3.vfs.delete": _delete_database,
    "_sqlite3.file.close": _close_database,
    **dict.fromkeys(("_sqlite3.file.lock", "_sqlite3.file.unlock"), _lock_database),
    "_sqlite3.file.shm_lock": _lock_log,
    "_sqlite3.file.shm_map": _map_log,
    "_sqlite3.file.shm_unmap": _unmap_log,
}
"""The effects of calls that returned, by gate."""
