"""Run first in a Python that is started in a group of processes, and become its program, recorded.

The preloaded library (`native/join/join.c`) runs this file in place of the program, with the program's interpreter,
isolated and without `site`: ARGV0 -I -S joiner.py DIRECTORY NUMBER LIBRARY ARGUMENT ... Interpreters of any version get
here: this file is in the syntax of Python 3.8, and imports nothing of ours before it knows the version. Whatever goes
wrong, the program runs: unrecorded, and its row in the group has the reason.
"""

from __future__ import annotations

import os
import sys

_OLDEST = (3, 11)

# Reasons, by their numbers in WHY_NOT of replaydbg/log/group.py, which an old Python cannot import.
NO_ROOM, IS_NOT_BUILT_FOR = 2, 8
_AT_WHY_NOT = (64, 64, 16)
"""Places in the page: the size of its head, and of a row; where the reason is in a row."""


class Program:
    """The program that was to run, as bytes: its words may be in any encoding."""

    def __init__(self) -> None:
        with open("/proc/self/cmdline", "rb") as file:  # noqa: PTH123
            words = file.read().split(b"\0")[:-1]
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123
            self.environment = file.read().split(b"\0")[:-1]
        own = len(words) - len(sys.argv) + 4  # ours, before the program's
        self.directory, number, self.library = words[own - 3 : own]
        self.number = int(number)
        self.argv = [words[0], *words[own:]]
        self.executable = os.readlink(b"/proc/self/exe")  # noqa: PTH115

    def plainly(self) -> tuple[bytes, list[bytes], list[bytes]]:
        """Return how the program is started unrecorded: the interpreter, its command line and its environment.

        Programs that it starts still join.
        """
        environment, preload = [], b"LD_PRELOAD=" + self.library
        for entry in self.environment:
            if entry.startswith(b"LD_PRELOAD="):
                entry, preload = entry + b":" + self.library, b""
            environment.append(entry)
        own = b"REPLAYDBG_GROUP=%05d:00000:1:%b" % (self.number, self.directory)
        return self.executable, self.argv, [*environment, *([preload] if preload else []), own]

    def run(self, why_not: int) -> None:
        """Become it, unrecorded; `why_not` is the number of the reason."""
        _note_reason(self.directory + b"/page", self.number, why_not)
        executable, argv, environment = self.plainly()
        os.execve(executable, argv, dict(_pair(entry) for entry in environment))


def _pair(entry: bytes) -> tuple[bytes, bytes]:
    name, _, value = entry.partition(b"=")
    return name, value


def _note_reason(page: bytes, number: int, why_not: int) -> None:
    head, row, place = _AT_WHY_NOT
    try:
        fd = os.open(page, os.O_WRONLY | os.O_CLOEXEC)
        os.pwrite(fd, why_not.to_bytes(4, sys.byteorder), head + (number - 1) * row + place)
        os.close(fd)
    except OSError:
        return  # somebody has removed the group


def _find_ourselves() -> None:
    """Put the directory of replaydbg last on the path, which has only the standard library."""
    if not sys.flags.isolated:
        # The library is elsewhere (PYTHONHOME), so the environment could not be ignored.
        given = os.environ.get("PYTHONPATH", "")
        del sys.path[: 1 + (len(given.split(os.pathsep)) if given else 0)]
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100,PTH120


def main() -> None:
    """Become the program."""
    program = Program()
    if sys.version_info < _OLDEST:
        program.run(IS_NOT_BUILT_FOR)
    _find_ourselves()
    try:
        from replaydbg.record.joining import Invitation, join

        group = (program.directory, program.number, program.library)
        why_not = join(Invitation(*group, program.executable, program.argv, program.plainly()))
    except Exception:  # noqa: BLE001 - nothing that is wrong here may keep the program from running
        why_not = NO_ROOM
    program.run(why_not)


if __name__ == "__main__":
    main()
