"""Settle the calls in flight: a rule for each call by its name.

A call in flight is one that may have been made without being logged, at most one in each thread. Whether it was made is
found in the file system where that can be known; calls that may be made twice are repeated; others are asked about.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from replaydbg.classes import dataclass, field, replace
from replaydbg.events.values import Value
from replaydbg.resources.kinds import (
    OpenedDirectory,
    OpenedFile,
    OpenedPipe,
    OpenedSocket,
    OpenedTerminal,
    OpenResource,
    Resources,
    Unknown,
)
from replaydbg.resume.conversation import CallInFlight
from replaydbg.resume.findings import CallVerdict, Finding, changed, done, repeat, unknown
from replaydbg.resume.name_acts import NameState, memory_path, semaphore_path
from replaydbg.resume.reopening.rules import STANDARD, is_standard
from replaydbg.resume.written import find_written


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of the program at the moment at which it goes live."""

    resources: Resources
    last_ns: int
    """When the last event happened, at the earliest: nanoseconds since the epoch."""
    is_cut_off: bool = False
    """Whether what files have after their recorded ends is cut off, so that no write in flight was made."""
    appended: Mapping[str, Sequence[CallInFlight]] = field(default_factory=dict)
    """In a group: the writes in flight of all its processes to files that they append to, by path."""
    truncated: frozenset[str] = frozenset()
    """In a group: the files of which only what is in the logs is after their recorded ends, and is cut off."""
    begun_ns: Mapping[int, int] = field(default_factory=dict)
    """By thread, when its call in flight began, at the earliest: nanoseconds since the epoch."""
    names: Mapping[str, NameState] = field(default_factory=dict)
    """The program's own last act on each name of a file, by its path as the program gave it."""

    def opened(self, number: int) -> OpenResource | None:
        """Return what a descriptor refers to; None: not known."""
        return self.resources.by_number().get(number)

    def path(self, value: object, base: object = None) -> Path | None:
        """Return a path of the program as an absolute one; None: not known.

        It is relative to the descriptor `base` of a directory; None: to the working directory.
        """
        if not isinstance(value, str | bytes):
            return None
        path = Path(os.fsdecode(value))
        if path.is_absolute():
            return path
        if base is not None:
            opened = self.opened(base) if isinstance(base, int) else None
            if isinstance(opened, OpenedDirectory | OpenedFile) and isinstance(opened.absolute, str):
                return Path(opened.absolute) / path
            return None
        return None if isinstance(self.resources.cwd, Unknown) else Path(self.resources.cwd) / path

    def may_be_new(self, found: os.stat_result) -> bool:
        """Whether a file may have been made or changed after the last event."""
        return found.st_ctime_ns >= self.last_ns

    def is_by(self, call: CallInFlight, changed_ns: int) -> bool | None:
        """Return whether a call in flight made a change; None: it is not known when the call began.

        `changed_ns`: when the change was made, nanoseconds since the epoch.
        """
        begun = self.begun_ns.get(call.thread)
        if begun is None and changed_ns >= self.last_ns:
            return None
        return begun is not None and changed_ns >= begun

    def last_act(self, path: Path) -> NameState | None:
        """Return the program's own last act on a path; None: it is not known."""
        acts = [state for name, state in self.names.items() if self.path(name) == path]
        return max(acts, key=lambda state: state.time_ns, default=None)

    def is_recent(self, act: NameState, call: CallInFlight) -> bool:
        """Whether time stamps of files do not tell an act of the program from its call in flight."""
        return act.time_ns >= self.begun_ns.get(call.thread, self.last_ns)

    def has_changed(self, directory: Path, call: CallInFlight) -> bool:
        """Whether the program itself made or removed other names in a directory right before a call in flight."""
        return any(
            self.is_recent(state, call) and path.parent == directory
            for name, state in self.names.items()
            if (path := self.path(name)) is not None
        )


def examine(calls: Sequence[CallInFlight], situation: Situation) -> tuple[list[Finding], dict[int, int]]:
    """Return a finding for each call, and how many bytes were written at the offset of descriptors (by number)."""
    findings: dict[int, Finding] = {}
    moved: dict[int, int] = {}
    writes: dict[tuple[int, ...], list[int]] = {}
    for index, call in enumerate(calls):
        opened = situation.opened(call.fd)
        if isinstance(opened, OpenedFile) and continues_file(call, opened) and not _is_stream(call, opened):
            writes.setdefault(opened.handle.numbers, []).append(index)
        else:
            findings[index] = rule_for(call.call)(call, situation)
    for numbers, indices in writes.items():
        opened = situation.opened(numbers[0])
        assert isinstance(opened, OpenedFile)
        together = [calls[index] for index in indices]
        if is_appended(opened):
            together = list(situation.appended.get(str(opened.absolute), together))
        is_cut_off = situation.is_cut_off or opened.absolute in situation.truncated
        written = find_written(opened, together, is_cut_off=is_cut_off)
        by_call = {id(call): finding for call, finding in zip(together, written.findings, strict=True)}
        findings |= {index: by_call[id(calls[index])] for index in indices}
        if any(each.call in WRITES for each in together):
            moved[numbers[0]] = written.moved
    return [findings[index] for index in range(len(calls))], moved


def is_appended(opened: OpenedFile) -> bool:
    """Whether a file is written at its end, wherever that is."""
    return isinstance(opened.handle.flags, int) and bool(opened.handle.flags & os.O_APPEND)


def is_regular(opened: OpenResource | None) -> bool:
    """Whether a descriptor refers to a regular file; one of which that is not known counts as one."""
    return isinstance(opened, OpenedFile) and opened.is_regular is not False and not opened.is_deleted


OPENS_FILE = "_io.FileIO.__init__"
WRITES = frozenset({"_io.FileIO.write", "posix.write", "posix.writev"})
"""Calls that write at the current offset."""
_WRITES_AT = frozenset({"posix.pwrite", "posix.pwritev"})
"""Calls that write at a given offset. Linux ignores it if the file is written at its end (pwrite(2), BUGS)."""


def continues_file(call: CallInFlight, opened: OpenResource | None) -> bool:
    """Whether a call writes to a regular file where its last write ended, or at its end: by that it is found there."""
    if not isinstance(opened, OpenedFile) or not is_regular(opened):
        return False
    return call.call in WRITES or (call.call in _WRITES_AT and is_appended(opened))


def rule_for(name: str) -> Callable[[CallInFlight, Situation], Finding]:
    """Return the rule for a call by its full name."""
    if name in _RULES:
        return _RULES[name]
    return next((rule for pattern, rule in _PATTERNS if fnmatchcase(name, pattern)), _not_known)


def has_rule(name: str) -> bool:
    """Whether a call has a rule of its own, or one by its module: any other one counts as not known."""
    return name in _RULES or any(fnmatchcase(name, pattern) for pattern, _ in _PATTERNS)


def _harmless(call: CallInFlight, situation: Situation) -> Finding:
    return repeat(call, "making it twice does no harm")


def _not_known(call: CallInFlight, situation: Situation) -> Finding:
    return unknown(call, "nothing shows whether it was made")


def _write_elsewhere(call: CallInFlight, situation: Situation) -> Finding:
    """Decide a write to something else than a regular file."""
    opened = situation.opened(call.fd)
    if _is_stream(call, opened):
        return repeat(call, "will be written to the stream of this command")
    if isinstance(opened, OpenedPipe) and opened.path is None:
        return repeat(call, "will be written to the new pipe")
    if isinstance(opened, OpenedFile) and not opened.is_deleted:
        return repeat(call, "will be written to the device")
    return unknown(call, "nothing shows whether it arrived")


def _is_stream(call: CallInFlight, opened: OpenResource | None) -> bool:
    """Whether a descriptor leads to a standard stream, which is our own one now."""
    return is_standard(opened) if opened is not None else 0 <= call.fd < STANDARD


def _send(call: CallInFlight, situation: Situation) -> Finding:
    """Decide a send: one on a connection that is lost fails, whether or not it had arrived."""
    opened = situation.opened(call.fd)
    if isinstance(opened, OpenedSocket) and opened.type == socket.SOCK_STREAM:
        return repeat(call, "its connection is lost, so it fails")
    return unknown(call, "nothing shows whether it arrived")


def _not_made(call: CallInFlight) -> Finding:
    return repeat(call, "not made before, will be made")


def _by_age(call: CallInFlight, situation: Situation, changed_ns: int, shown: str, not_again: str) -> Finding:
    """Decide a call whose effect is there since `changed_ns`; `shown` says so, as a clause."""
    is_by_call = situation.is_by(call, changed_ns)
    if is_by_call is None:
        return _perhaps(call, shown)
    return done(call, f"{shown}, {not_again}") if is_by_call else _not_made(call)


def _perhaps(call: CallInFlight, shown: str) -> Finding:
    return unknown(call, f"{shown}, but perhaps not by this call")


def _by_age_of_new(
    call: CallInFlight, situation: Situation, path: Path, changed_ns: int, shown: str, not_again: str
) -> Finding:
    """Decide a call that makes `path`, which is there: the program itself may have made it before."""
    act = situation.last_act(path)
    was_there = act is not None and act.is_made
    if was_there and act is not None and situation.is_recent(act, call):
        return _not_made(call)
    found = _by_age(call, situation, changed_ns, shown, not_again)
    # A directory gets a new time stamp from what is made in it, too.
    return _perhaps(call, shown) if was_there and found.verdict is CallVerdict.DONE else found


def _make(call: CallInFlight, situation: Situation) -> Finding:
    """Decide mkdir and its kin: what is there, and is newer than the call, was made by it."""
    path = situation.path(call_argument(call, 0, "path"), call.keywords.get("dir_fd"))
    if path is None:
        return _not_known(call, situation)
    found = _lstat(path)
    if found is None or _is_other(call, path, found):
        return _not_made(call)
    return _by_age_of_new(call, situation, path, found.st_ctime_ns, f"{path} is there", "not made again")


def _is_other(call: CallInFlight, path: Path, found: os.stat_result) -> bool:
    """Whether a file is not what the call makes: a directory without entries, a fifo, or what mknod makes."""
    is_kind = {"posix.mkdir": stat.S_ISDIR, "posix.mkfifo": stat.S_ISFIFO}.get(call.call)
    return (is_kind is not None and not is_kind(found.st_mode)) or _has_content(path, found)


def _remove(call: CallInFlight, situation: Situation) -> Finding:
    """Decide rmdir and unlink: what is gone, from a directory that has changed since the call, was removed by it."""
    path = situation.path(call_argument(call, 0, "path"), call.keywords.get("dir_fd"))
    if path is None:
        return _not_known(call, situation)
    directory = _lstat(path.parent)
    act = situation.last_act(path)
    if _lstat(path) is not None or directory is None or (act is not None and not act.is_made):
        return _not_made(call)
    if act is None and situation.has_changed(path.parent, call):
        return unknown(call, f"{path} is gone, and nothing shows whether it was there before")
    return _by_age(call, situation, directory.st_mtime_ns, f"{path} is gone", "not removed again")


def _rename(call: CallInFlight, situation: Situation) -> Finding:
    source, target = _two_paths(call, situation)
    if source is None or target is None:
        return _not_known(call, situation)
    found = _lstat(target)
    act = situation.last_act(source)
    if _lstat(source) is not None or found is None or (act is not None and not act.is_made):
        return _not_made(call)
    return _by_age(call, situation, found.st_ctime_ns, f"{source} is {target} already", "not renamed again")


def _link(call: CallInFlight, situation: Situation) -> Finding:
    source, target = _two_paths(call, situation)
    if source is None or target is None:
        return _not_known(call, situation)
    found, linked = _lstat(source), _lstat(target)
    is_linked = found is not None and linked is not None and os.path.samestat(found, linked)
    if linked is None or not is_linked:
        return _not_made(call)
    shown = f"{target} is a link to {source} already"
    return _by_age_of_new(call, situation, target, linked.st_ctime_ns, shown, "not linked again")


def _symlink(call: CallInFlight, situation: Situation) -> Finding:
    target = situation.path(call_argument(call, 1, "dst"), call.keywords.get("dir_fd"))
    content = call_argument(call, 0, "src")
    if target is None or not isinstance(content, str | bytes):
        return _not_known(call, situation)
    found = _lstat(target)
    if found is None or not stat.S_ISLNK(found.st_mode):
        return _not_made(call)
    if os.fsencode(target.readlink()) != os.fsencode(content):
        return _not_made(call)
    shown = f"{target} is such a link already"
    return _by_age_of_new(call, situation, target, found.st_ctime_ns, shown, "not made again")


def _open(call: CallInFlight, situation: Situation) -> Finding:
    """Decide opening a file: only one that must be new (O_EXCL) cannot be opened twice.

    An empty file that is newer than the last event may have been made by this call, or be somebody else's lock file.
    """
    path = situation.path(call_argument(call, 0, "path"), call.keywords.get("dir_fd"))
    if path is None or not _must_be_new(call):
        return _harmless(call, situation)
    found = _lstat(path)
    act = situation.last_act(path)
    if found is None or found.st_size or not situation.may_be_new(found) or (act is not None and act.is_made):
        return _not_made(call)
    return changed(call, f"{path} is there, empty, and newer than the last event: perhaps this call made it")


def _must_be_new(call: CallInFlight) -> bool:
    how = call_argument(call, 1, "flags")
    return "x" in how if isinstance(how, str) else isinstance(how, int) and bool(how & os.O_EXCL)


def _open_memory(call: CallInFlight, situation: Situation) -> Finding:
    """Decide shm_open, which works like opening a file by its name."""
    path = memory_path(call_argument(call, 0, "path"))
    return _open(replace(call, args=(path, call_argument(call, 1, "flags")), keywords={}), situation)


def _unlink_memory(call: CallInFlight, situation: Situation) -> Finding:
    return _remove(replace(call, args=(memory_path(call_argument(call, 0, "path")),), keywords={}), situation)


def _unlink_semaphore(call: CallInFlight, situation: Situation) -> Finding:
    return _remove(replace(call, args=(semaphore_path(call_argument(call, 0, "name")),), keywords={}), situation)


def _change_attribute(call: CallInFlight, situation: Situation) -> Finding:
    """Decide removexattr, and setxattr that must make the attribute: both raise if they are made twice."""
    is_removed = call.call == "posix.removexattr"
    flags = call_argument(call, 3, "flags")
    if not is_removed and not (isinstance(flags, int) and flags & os.XATTR_CREATE):
        return _harmless(call, situation)
    target = call_argument(call, 0, "path")
    opened = situation.opened(target) if isinstance(target, int) else None
    path = Path(opened.absolute) if isinstance(opened, OpenedFile) and isinstance(opened.absolute, str) else None
    path = path or situation.path(target)
    name = call_argument(call, 1, "attribute")
    if path is None or not isinstance(name, str | bytes):
        return _not_known(call, situation)
    follows = call.keywords.get("follow_symlinks") is not False
    try:
        found = path.stat(follow_symlinks=follows)
        is_there = os.fsdecode(name) in os.listxattr(path, follow_symlinks=follows)
    except OSError:  # the call raises what there is to be known
        return _harmless(call, situation)
    if is_there == is_removed:
        return _not_made(call)
    shown = f"{path} {'has no' if is_removed else 'has the'} attribute {os.fsdecode(name)}"
    return _by_age(call, situation, found.st_ctime_ns, shown, "not made again")


def _read(call: CallInFlight, situation: Situation) -> Finding:
    """Decide a read: what was taken out of a fifo or a terminal by the killed program cannot be read again."""
    opened = situation.opened(call.fd)
    if _is_stream(call, opened):
        return repeat(call, "will be read from the stream of this command")
    is_fifo = isinstance(opened, OpenedPipe) and opened.path is not None
    is_device = isinstance(opened, OpenedFile) and opened.is_regular is False
    if is_fifo or is_device or isinstance(opened, OpenedTerminal):
        return repeat(call, "will be made; what the killed program may have read by it is lost")
    return _harmless(call, situation)


def _copy(call: CallInFlight, situation: Situation) -> Finding:
    """Decide a copy by the kernel: it begins at the recorded offset again, unless the file is written at its end."""
    opened = situation.opened(copy_target(call))
    if isinstance(opened, OpenedSocket):
        return _send(call, situation)
    if isinstance(opened, OpenedFile) and isinstance(opened.handle.flags, int):
        return _not_known(call, situation) if opened.handle.flags & os.O_APPEND else _harmless(call, situation)
    return _not_known(call, situation)


def copy_target(call: CallInFlight) -> int:
    """Return the descriptor to which the kernel copies; -1: the call does not copy."""
    index = {"posix.sendfile": 0, "posix.copy_file_range": 1, "posix.splice": 1}.get(call.call)
    number = call_argument(call, index) if index is not None else None
    return number if isinstance(number, int) else -1


def _two_paths(call: CallInFlight, situation: Situation) -> tuple[Path | None, Path | None]:
    source = situation.path(call_argument(call, 0, "src"), call.keywords.get("src_dir_fd"))
    return source, situation.path(call_argument(call, 1, "dst"), call.keywords.get("dst_dir_fd"))


def call_argument(call: CallInFlight, index: int, name: str = "") -> Value:
    """Return an argument by its index, or the keyword argument `name`; None: it was not given."""
    if name and name in call.keywords:
        return call.keywords[name]
    return call.args[index] if index < len(call.args) else None


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _has_content(path: Path, found: os.stat_result) -> bool:
    """Whether a directory has entries: a new one has none."""
    try:
        return stat.S_ISDIR(found.st_mode) and any(path.iterdir())
    except OSError:
        return True


_Rule = Callable[[CallInFlight, Situation], Finding]
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(WRITES, _write_elsewhere),
    **dict.fromkeys(("posix.mkdir", "posix.mkfifo", "posix.mknod"), _make),
    **dict.fromkeys(("posix.rmdir", "posix.unlink", "posix.remove"), _remove),
    **dict.fromkeys(("posix.rename", "posix.replace"), _rename),
    "posix.link": _link,
    "posix.symlink": _symlink,
    **dict.fromkeys((OPENS_FILE, "posix.open"), _open),
    "_posixshmem.shm_open": _open_memory,
    "_posixshmem.shm_unlink": _unlink_memory,
    "_multiprocessing.sem_unlink": _unlink_semaphore,
    **dict.fromkeys(("posix.removexattr", "posix.setxattr"), _change_attribute),
    **dict.fromkeys(("_io.FileIO.read", "_io.FileIO.readinto", "_io.FileIO.readall"), _read),
    **dict.fromkeys(("posix.read", "posix.readinto", "posix.readv"), _read),
    **dict.fromkeys(("posix.copy_file_range", "posix.sendfile", "posix.splice"), _copy),
    **dict.fromkeys((f"_socket.socket.send{each}" for each in ("", "all", "to", "msg", "msg_afalg")), _send),
    # They start or end something outside, which cannot be undone by doing it again.
    **dict.fromkeys(
        (
            "posix.fork",
            "posix.forkpty",
            "posix.posix_spawn",
            "posix.posix_spawnp",
            "posix.system",
            "posix.kill",
            "posix.killpg",
            "posix.execv",
            "posix.execve",
            "posix.nice",
            "posix.eventfd_write",
            "_posixsubprocess.fork_exec",
            "_signal.pidfd_send_signal",
            "syslog.syslog",
            "readline.append_history_file",
            "termios.tcsendbreak",
            "fcntl.ioctl",
        ),
        _not_known,
    ),
}
_PATTERNS: tuple[tuple[str, _Rule], ...] = tuple(
    (pattern, _harmless)
    for pattern in (
        # What is left of these modules reads, or sets something to a given value.
        *("posix.*", "_io.*", "fcntl.*", "termios.*", "select.*", "mmap.*", "_posixshmem.*", "_multiprocessing.*"),
        *("_signal.*", "_thread.*", "_imp.*", "faulthandler.*", "resource.*", "pwd.*", "grp.*", "spwd.*", "_locale.*"),
        *("syslog.*", "sys.*", "_tracemalloc.*", "gc.*", "time.*", "_datetime.*", "_lsprof.*", "_random.*", "_uuid.*"),
        *("readline.*", "builtins.input", "_socket.*", "_dbm.open", "_gdbm.open"),
        # A connection under TLS is lost, so what is sent on it fails.
        "_ssl.*",
        # Writes at given offsets; the core makes the database's files anew.
        *("sqlite", "_sqlite3.*"),
        # What a program asks the recorder for. If it had gone on from a checkpoint, this would not be its log.
        "replaydbg.*",
        # Calls of C libraries that only read.
        *("libc.clock_*", "libc.time*", "libc.get*", "libc.*stat*", "libc.*read*", "libc.open*", "libc.*seek*"),
        *("libc.*sleep", "libc.arc4random*", "libc.poll*", "libc.select", "libc.epoll_*", "libc.recv*"),
    )
)
