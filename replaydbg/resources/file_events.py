"""Follow what calls do to files: opening, reading, writing, seeking, renaming."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from replaydbg.events import linux
from replaydbg.events.records import Event
from replaydbg.events.values import ContentRef, StatResult
from replaydbg.resources.descriptions import Description, status_flags
from replaydbg.resources.event_values import argument, byte_count, error_number, first, integer, number_of, whole
from replaydbg.resources.file_names import FileNode
from replaydbg.resources.kinds import LastFileRead, LastFileWrite, Unknown
from replaydbg.resources.process_state import ProcessState

_DEVICES = ("/dev/", "/proc/", "/sys/")
"""Files below are no regular ones, or not for an offset that a write moves."""
_MODES = {
    "r": linux.O_RDONLY,
    "w": linux.O_WRONLY | linux.O_CREAT | linux.O_TRUNC,
    "x": linux.O_WRONLY | linux.O_CREAT | linux.O_EXCL,
    "a": linux.O_WRONLY | linux.O_CREAT | linux.O_APPEND,
}
_AT_END = Unknown("it is the end of a file whose size is not recorded")
_MOST_MODE = 0o177777
_INTO_ITSELF = Unknown("a call copied from the open file into itself")
_INTO_DEVICE = Unknown("the offset of a device means nothing")


def flags_of_mode(mode: str) -> int:
    """Return the flags with which FileIO opens a file (`_io__io_FileIO___init___impl` in CPython's fileio.c)."""
    flags = next((_MODES[each] for each in mode if each in _MODES), linux.O_RDONLY)
    return flags & ~linux.O_ACCMODE | linux.O_RDWR if "+" in mode else flags


def open_path(to: ProcessState, event: Event, number: int, path: str | bytes, flags: int) -> None:
    """Follow the opening of `path` as a descriptor."""
    absolute = to.absolute(path, argument(event, 9, "dir_fd"))
    known = to.open_flags
    kind, unnamed = "file", flags & known.unnamed == known.unnamed
    node = FileNode(absolute, is_deleted=True, size=0) if unnamed else to.names.node(absolute)
    if flags & known.directory and not unnamed:
        kind = "directory"
    if node.mode is not None and stat.S_ISFIFO(node.mode):
        kind = "pipe"
    if flags & linux.O_TRUNC or (flags & linux.O_EXCL and flags & linux.O_CREAT):
        node.size, node.changed = 0, event.number
        if not flags & linux.O_TRUNC:
            node.mode = stat.S_IFREG  # it is new
        if flags & linux.O_CREAT:
            node.made = event.number
    can_seek = None if kind == "file" else False
    made = Description(kind, to.origin(event), status_flags(flags, known), path, node, can_seek=can_seek)
    made.offset = 0
    if isinstance(absolute, str) and absolute.startswith(_DEVICES):
        made.offset = _INTO_DEVICE
    if kind == "pipe":
        made.side = {linux.O_RDONLY: "read", linux.O_WRONLY: "write"}.get(flags & linux.O_ACCMODE, "both")
    to.opened(number, made, event)


def _open(to: ProcessState, event: Event) -> None:
    path = argument(event, 0, "path")
    if isinstance(path, str | bytes):
        open_path(to, event, number_of(event.outcome), path, integer(argument(event, 1, "flags")))


def _make_file(to: ProcessState, event: Event) -> None:
    """`FileIO(path or descriptor)`; with an opener, its own event came before."""
    number, what = number_of(first(event.outcome)), argument(event, 0)
    mode = argument(event, 1)
    known = to.numbers.facts(number)
    if isinstance(what, int):
        if to.used(number, event) is not None and (facts := to.numbers.facts(number)) is not None:
            facts.has_file_object = True
            return
    elif known is not None and known.description.kind in ("file", "pipe") and known.doubt is None:
        # Descriptors of files are closed by events only. So it is open, and an opener returned it.
        if isinstance(mode, str) and "a" in mode:
            _to_end(known.description, event)
        return
    if isinstance(what, str | bytes):
        flags = flags_of_mode(mode) if isinstance(mode, str) else linux.O_RDONLY
        open_path(to, event, number, what, flags)
        made = to.numbers.get(number)
        if made is not None and flags & linux.O_APPEND:
            _to_end(made, event)


def _to_end(description: Description, event: Event) -> None:
    """FileIO seeks to the end of a file that it appends to; its outcome has where that is."""
    if description.kind == "file" and description.node is not None:
        outcome, node = event.outcome, description.node
        if isinstance(outcome, tuple) and len(outcome) > 2 and isinstance(outcome[2], int):
            node.size, node.changed = outcome[2], event.number
            if not outcome[2]:  # it may have been there, and empty: then its name is there, too
                node.made = event.number
        size = node.size
        description.offset = size if isinstance(size, int) else _AT_END


def _moved(description: Description, count: int | None) -> None:
    if isinstance(description.offset, int) and count and description.can_seek is not False:
        description.offset += count


def _read(to: ProcessState, event: Event) -> None:
    description = to.used(number_of(argument(event, 0)), event)
    if description is None:
        return
    count = byte_count(event.outcome)
    if description.kind == "eventfd":
        to.eventfd_read(description)
    if (read := to.input_of(description)) is not None:
        read.read(event)
    _has_read(description, event, description.offset)
    _moved(description, count)
    if count and description.can_seek and description.node is not None and _met_end(event, count):
        description.node.size = description.offset if isinstance(description.offset, int) else description.node.size


def _read_at(to: ProcessState, event: Event) -> None:
    description = to.used(number_of(argument(event, 0)), event)
    if description is not None:
        _has_read(description, event, whole(argument(event, 2)))


def _has_read(description: Description, event: Event, offset: object) -> None:
    """Keep what was read of a file at an offset, if both are known."""
    data = event.outcome if event.filled is None else event.filled
    if description.kind != "file" or not isinstance(offset, int):
        return
    if isinstance(data, bytes | ContentRef) and byte_count(data):
        description.last_read = LastFileRead(event.number, offset, data)


def _met_end(event: Event, count: int) -> bool:
    """Whether a read of a regular file returned less than it asked for: it ended at the end of the file."""
    asked = argument(event, 1)
    return event.gate == "_io.FileIO.readall" or (isinstance(asked, int) and count < asked)


def _written(to: ProcessState, event: Event, description: Description, count: int, offset: object = None) -> None:
    """Bytes were written at the offset of a file, or at a given one."""
    node = description.node
    start: int | Unknown = description.offset
    if description.has_flag(linux.O_APPEND) and node is not None:
        start = node.size
    elif (given := whole(offset)) is not None:
        start = given
    description.last_write = LastFileWrite(event.number, start, count, event.digest)
    if node is not None:
        node.changed = event.number
    end = start + count if isinstance(start, int) else start
    if not isinstance(offset, int):
        description.offset = end if description.can_seek is not False else description.offset
    if node is not None and isinstance(node.size, int):
        node.size = max(node.size, end) if isinstance(end, int) else end


def _write(to: ProcessState, event: Event) -> None:
    description = to.used(number_of(argument(event, 0)), event)
    count = byte_count(event.outcome)
    if description is not None and count is not None:
        if description.kind == "eventfd":
            description.value = Unknown("it was written to as a file")
        _written(to, event, description, count)


def _write_at(to: ProcessState, event: Event) -> None:
    description = to.used(number_of(argument(event, 0)), event)
    count = byte_count(event.outcome)
    if description is not None and count is not None:
        description.can_seek = True
        _written(to, event, description, count, integer(argument(event, 2, "offset")))


def _transfer(to: ProcessState, event: Event) -> None:
    """`sendfile`, `copy_file_range` and `splice`: an offset that is given leaves that of the file alone."""
    count = byte_count(event.outcome) or 0
    if event.gate == "posix.sendfile":
        target, source = argument(event, 0, "out_fd"), argument(event, 1, "in_fd")
        at_source, at_target = argument(event, 2, "offset"), None
    else:
        source, target = argument(event, 0, "src"), argument(event, 1, "dst")
        at_source, at_target = argument(event, 3, "offset_src"), argument(event, 4, "offset_dst")
    reads, writes = to.used(number_of(source), event), to.used(number_of(target), event)
    if reads is not None and at_source is None:
        _moved(reads, count)
        if (read := to.input_of(reads)) is not None:
            read.copied(count)
    if writes is not None and count:
        _written(to, event, writes, count, at_target)
        if writes is reads:
            writes.offset = _INTO_ITSELF


def _seek(to: ProcessState, event: Event) -> None:
    description = to.used(number_of(argument(event, 0)), event)
    offset = whole(event.outcome)
    if description is None or offset is None:
        return
    if (read := to.input_of(description)) is not None:
        read.seek(event)
    is_end = argument(event, 1) == 0 and argument(event, 2) == os.SEEK_END
    is_end = is_end or (description.offset is _AT_END and event.gate == "_io.FileIO.tell")
    description.can_seek = True
    description.offset = offset
    if is_end and description.node is not None:
        description.node.size = offset


def _cannot_seek(to: ProcessState, event: Event) -> None:
    description = to.numbers.get(number_of(argument(event, 0)))
    if description is not None and error_number(event) == linux.ESPIPE:
        to.not_seekable(description)


def _seekable(to: ProcessState, event: Event) -> None:
    description = to.used(number_of(argument(event, 0)), event)
    if description is not None and event.outcome is False:
        to.not_seekable(description)
    elif description is not None:
        description.can_seek = True


def _isatty(to: ProcessState, event: Event) -> None:
    description = to.used(number_of(argument(event, 0)), event)
    if description is not None and event.outcome is True and description.kind != "terminal":
        description.kind, description.can_seek = "terminal", False


def _truncate(to: ProcessState, event: Event) -> None:
    description = to.used(number_of(argument(event, 0)), event)
    size = whole(event.outcome if isinstance(event.outcome, int) else argument(event, 1, "length"))
    if description is not None and description.node is not None and size is not None:
        description.node.size, description.node.changed = size, event.number


def _truncate_path(to: ProcessState, event: Event) -> None:
    path, size = argument(event, 0, "path"), whole(argument(event, 1, "length"))
    if isinstance(path, str | bytes) and size is not None:
        node = to.names.node(to.absolute(path))
        node.size, node.changed = size, event.number
    else:
        _truncate(to, event)


def _allocate(to: ProcessState, event: Event) -> None:
    description = to.used(number_of(argument(event, 0)), event)
    end = integer(argument(event, 1)) + integer(argument(event, 2))
    if description is not None and description.node is not None and isinstance(description.node.size, int):
        description.node.size = max(description.node.size, end)


def _stat(to: ProcessState, event: Event) -> None:
    what, found = argument(event, 0, "path"), event.outcome
    if not isinstance(found, StatResult) or not 0 <= found.mode <= _MOST_MODE or whole(found.size) is None:
        return
    if isinstance(what, str | bytes):
        to.names.seen(to.absolute(what, argument(event, 9, "dir_fd")), found.mode, found.size)
        return
    description = to.used(number_of(what), event)
    if description is not None:
        to.has_mode(description, found.mode, found.size)


def _rename(to: ProcessState, event: Event) -> None:
    old, new = argument(event, 0, "src"), argument(event, 1, "dst")
    if isinstance(old, str | bytes) and isinstance(new, str | bytes):
        source = to.absolute(old, argument(event, 9, "src_dir_fd"))
        to.names.renamed(source, to.absolute(new, argument(event, 9, "dst_dir_fd")))


def _unlink(to: ProcessState, event: Event) -> None:
    path = argument(event, 0, "path")
    if isinstance(path, str | bytes):
        to.names.removed(to.absolute(path, argument(event, 9, "dir_fd")))


def _fifo(to: ProcessState, event: Event) -> None:
    path = argument(event, 0, "path")
    if isinstance(path, str | bytes):
        to.names.made_fifo(to.absolute(path, argument(event, 9, "dir_fd")))


def _chdir(to: ProcessState, event: Event) -> None:
    where = argument(event, 0, "path")
    if isinstance(where, str | bytes):
        to.names.cwd = to.absolute(where)
    else:
        to.names.cwd = to.directory(number_of(where))


def _getcwd(to: ProcessState, event: Event) -> None:
    if isinstance(event.outcome, str | bytes):
        to.names.cwd = os.fsdecode(event.outcome)


def _scan(to: ProcessState, event: Event) -> None:
    """`scandir` keeps a directory open until it has returned all entries, or is closed, without an event of its own."""
    where = argument(event, 0, "path", ".")
    if isinstance(where, int):
        absolute = to.directory(number_of(where))
    else:
        absolute = to.absolute(where) if isinstance(where, str | bytes) else to.absolute(".")
    flags = to.open_flags.directory | linux.O_NONBLOCK
    made = Description("directory", to.origin(event), flags, node=FileNode(absolute))
    made.path = where if isinstance(where, str | bytes) else "."
    made.can_seek = False
    to.guess(made, event, "an iterator of scandir() is closed without an event; its number is inferred")
    to.scans.append(made)


def _scanned(to: ProcessState, event: Event) -> None:
    if event.outcome is None and len(to.scans) == 1:  # with several it is not recorded which one is at its end
        for number in list(to.scans[0].numbers):
            to.numbers.drop(number)


def _list(to: ProcessState, event: Event) -> None:
    if isinstance(where := argument(event, 0, "path"), int):
        to.directory(where)


_POSITIONS = ("posix.lseek", "_io.FileIO.seek", "_io.FileIO.tell")

FILE_ACTIONS: dict[str, Callable[[ProcessState, Event], None]] = {
    "posix.open": _open,
    "_io.FileIO.__init__": _make_file,
    **dict.fromkeys(
        (
            "posix.read",
            "posix.readinto",
            "posix.readv",
            "_io.FileIO.read",
            "_io.FileIO.readall",
            "_io.FileIO.readinto",
        ),
        _read,
    ),
    "posix.pread": _read_at,
    **dict.fromkeys(("posix.write", "posix.writev", "_io.FileIO.write"), _write),
    **dict.fromkeys(("posix.pwrite", "posix.pwritev"), _write_at),
    **dict.fromkeys(("posix.sendfile", "posix.copy_file_range", "posix.splice"), _transfer),
    **dict.fromkeys(_POSITIONS, _seek),
    "_io.FileIO.seekable": _seekable,
    **dict.fromkeys(("_io.FileIO.isatty", "_io.FileIO._isatty_open_only", "posix.isatty"), _isatty),
    **dict.fromkeys(("_io.FileIO.truncate", "posix.ftruncate"), _truncate),
    "posix.truncate": _truncate_path,
    "posix.posix_fallocate": _allocate,
    **dict.fromkeys(("posix.fstat", "posix.stat", "posix.lstat"), _stat),
    **dict.fromkeys(("posix.rename", "posix.replace"), _rename),
    **dict.fromkeys(("posix.unlink", "posix.remove", "posix.rmdir"), _unlink),
    "posix.mkfifo": _fifo,
    **dict.fromkeys(("posix.chdir", "posix.fchdir"), _chdir),
    **dict.fromkeys(("posix.getcwd", "posix.getcwdb"), _getcwd),
    "posix.scandir": _scan,
    "posix.ScandirIterator.__next__": _scanned,
    "posix.listdir": _list,
}
"""The effects of calls that returned, by gate."""

FAILED_FILE_ACTIONS: dict[str, Callable[[ProcessState, Event], None]] = dict.fromkeys(_POSITIONS, _cannot_seek)
"""The effects of calls that raised."""
