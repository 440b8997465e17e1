"""Settle the calls in flight: a rule for each call by its name.

A call in flight is one that may have been made without being logged, at most one in each thread. Whether it was made is
found in the file system where that can be known; calls that may be made twice are repeated; others are asked about.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from replaydbg.resources.kinds import (
    OpenedFile,
    OpenedPipe,
    OpenedSocket,
    OpenedTerminal,
    OpenResource,
)
from replaydbg.resume.calls.name_rules import NAME_RULES, Rule
from replaydbg.resume.calls.situation import Situation, call_argument, harmless, not_known
from replaydbg.resume.conversation import CallInFlight
from replaydbg.resume.findings import Finding, repeat, unknown
from replaydbg.resume.reopening.rules import STANDARD, is_standard
from replaydbg.resume.written import find_written


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
    return next((rule for pattern, rule in _PATTERNS if fnmatchcase(name, pattern)), not_known)


def has_rule(name: str) -> bool:
    """Whether a call has a rule of its own, or one by its module: any other one counts as not known."""
    return name in _RULES or any(fnmatchcase(name, pattern) for pattern, _ in _PATTERNS)


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


def _read(call: CallInFlight, situation: Situation) -> Finding:
    """Decide a read: what was taken out of a fifo or a terminal by the killed program cannot be read again."""
    opened = situation.opened(call.fd)
    if _is_stream(call, opened):
        return repeat(call, "will be read from the stream of this command")
    is_fifo = isinstance(opened, OpenedPipe) and opened.path is not None
    is_device = isinstance(opened, OpenedFile) and opened.is_regular is False
    if is_fifo or is_device or isinstance(opened, OpenedTerminal):
        return repeat(call, "will be made; what the killed program may have read by it is lost")
    return harmless(call, situation)


def _copy(call: CallInFlight, situation: Situation) -> Finding:
    """Decide a copy by the kernel: it begins at the recorded offset again, unless the file is written at its end."""
    opened = situation.opened(copy_target(call))
    if isinstance(opened, OpenedSocket):
        return _send(call, situation)
    if isinstance(opened, OpenedFile) and isinstance(opened.handle.flags, int):
        return not_known(call, situation) if opened.handle.flags & os.O_APPEND else harmless(call, situation)
    return not_known(call, situation)


def copy_target(call: CallInFlight) -> int:
    """Return the descriptor to which the kernel copies; -1: the call does not copy."""
    index = {"posix.sendfile": 0, "posix.copy_file_range": 1, "posix.splice": 1}.get(call.call)
    number = call_argument(call, index) if index is not None else None
    return number if isinstance(number, int) else -1


_RULES: dict[str, Rule] = {
    **dict.fromkeys(WRITES, _write_elsewhere),
    **NAME_RULES,
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
        not_known,
    ),
}
_PATTERNS: tuple[tuple[str, Rule], ...] = tuple(
    (pattern, harmless)
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
        # A program that uses ZeroMQ cannot go live.
        "libzmq.*",
        # What a program asks the recorder for. If it had gone on from a checkpoint, this would not be its log.
        "replaydbg.*",
        # Calls of C libraries that only read.
        *("libc.clock_*", "libc.time*", "libc.get*", "libc.*stat*", "libc.*read*", "libc.open*", "libc.*seek*"),
        *("libc.*sleep", "libc.arc4random*", "libc.poll*", "libc.select", "libc.epoll_*", "libc.recv*"),
    )
)
