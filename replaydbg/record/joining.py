"""A Python that was started in a group of processes: write its recording's first files, and become its interpreter.

The same is done here as in the launcher, without a process of its own: so the program has the process id, the parent,
the descriptors and the signals of a plain start. Only `joiner.py` imports this.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import CannotRecord, NotBuilt, UnsupportedPython, UsageError
from replaydbg.gates.row import Row
from replaydbg.gates.table import OWN
from replaydbg.launch import interpreter
from replaydbg.launch.process import reset_signals
from replaydbg.launch.program_python import Started, this_one
from replaydbg.log.group import (
    FINDS_NOTHING,
    IS_NOT_BUILT_FOR,
    IS_OURS,
    IS_TYPED,
    NO_ROOM,
    ORDERS,
    PAGE,
    TOO_LARGE,
    may_grow,
)
from replaydbg.native import check_interpreter, core_file
from replaydbg.record.kept_names import as_boot
from replaydbg.record.place import removed_unless_begun
from replaydbg.record.snapshot_orders import NO_SNAPSHOTS
from replaydbg.record.start import Wishes, make_header, wanted_program, write_files
from replaydbg.store.directory import LIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from replaydbg.record.start import InterpreterStart

_OWN_COMMAND = interpreter.BOOTSTRAP.partition("{")[0]


class Invitation(NamedTuple):
    """The command line of a started program, and the place of its recording. Texts are bytes, in any encoding."""

    directory: bytes
    """That of the group."""
    number: int
    """The number of its row, and of its recording."""
    library: bytes
    """By which the programs that it starts join."""
    executable: bytes
    """The interpreter's file."""
    argv: list[bytes]
    """The command line."""
    plainly: tuple[bytes, list[bytes], list[bytes]]
    """How it runs unrecorded: interpreter, command line and environment."""


def join(invitation: Invitation) -> int:
    """Become the program's interpreter, recorded; return the number of the reason if that cannot be."""
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a Ctrl-C ends the program here as it would in a plain start
    directory = Path(os.fsdecode(invitation.directory))
    words = [os.fsdecode(word) for word in invitation.argv[1:]]
    own, rest = interpreter.leading_options(words)
    if rest[:1] == ["-c"] and rest[1:] and rest[1].startswith(_OWN_COMMAND):
        return IS_OURS
    options = interpreter.parse_options(own)
    letters = {option.name for option in options}
    if {"V", "h", "?"} & letters:
        return FINDS_NOTHING
    if rest[:1] in ([], ["-"]) or "i" in letters:
        return IS_TYPED
    if not rest[0].startswith("-") and not os.path.exists(rest[0]):  # noqa: PTH110
        return FINDS_NOTHING
    mode = _utf8_mode(options)
    if mode is not None and mode != sys.flags.utf8_mode:
        # The program's words would be decoded in another way than by its own interpreter.
        again = [*sys.orig_argv[: -len(sys.argv)], "-X", f"utf8={mode}", *sys.argv]
        os.execv(invitation.executable, again)
    umask = os.umask(0o077)
    try:
        check_interpreter()
        core = core_file(interpreter.soabi())
        if not may_grow(str(directory)):
            return TOO_LARGE
        start = _prepared(invitation, directory, words, core, umask)
        os.umask(umask)
        reset_signals([int(number) for number in interpreter.ignored_signals()])
        os.execve(os.fsdecode(invitation.executable), start.command, start.environment)
    except UsageError:
        return FINDS_NOTHING
    except (UnsupportedPython, NotBuilt):
        return IS_NOT_BUILT_FOR
    except (CannotRecord, OSError, ValueError):
        return NO_ROOM
    finally:
        os.umask(umask)


def _utf8_mode(options: list[interpreter.Option]) -> int | None:
    """Return whether the program wants UTF-8 mode; None: that depends on its locale, as it does here."""
    given = os.environ.get("PYTHONUTF8")
    wanted = int(given) if given in ("0", "1") and not {"E", "I"} & {option.name for option in options} else None
    for option in options:
        if option.name == "X" and option.value in ("utf8", "utf8=1", "utf8=0"):
            wanted = int(option.value != "utf8=0")
    return wanted


def _prefix() -> str:
    """Return `sys.prefix` as the program has it: in a virtual environment `site` sets it, which is not loaded here."""
    place = os.path.dirname(os.path.abspath(sys.executable))  # noqa: PTH100,PTH120
    parent = os.path.dirname(place)  # noqa: PTH120
    is_virtual = any(os.path.exists(f"{each}/pyvenv.cfg") for each in (place, parent))  # noqa: PTH110
    return parent if is_virtual else sys.prefix


def _prepared(invitation: Invitation, directory: Path, words: list[str], core: str, umask: int) -> InterpreterStart:
    orders: dict[str, Any] = json.loads((directory / ORDERS).read_bytes())
    own, rest = interpreter.leading_options(words)
    wanted = wanted_program(Started(this_one(), own, rest))
    wishes = Wishes(*orders["wishes"])
    table = [*OWN, *(Row(*each) for each in orders["rows"])]
    seed = interpreter.choose_hash_seed(wanted.environment, wanted.options)
    live = directory / f"{invitation.number}{LIVE}"
    live.mkdir(mode=0o700)
    with removed_unless_begun(live):
        header = make_header(wanted, seed, table, live, wishes)
        header["name"] = f"{orders['name']}/{invitation.number}"
        header["group"] = orders["group"]
        header["process"] = invitation.number
        header["umask"] = umask
        header["python"] = {**header["python"], "prefix": _prefix()}
        boot = {
            **wishes.as_boot(),
            **orders["tests"],
            "mode": "record",
            "live_dir": os.fsencode(live),
            "trace": None,
            "snapshots": NO_SNAPSHOTS.as_boot(),
            "group": os.fsencode(directory / PAGE),
            "process": invitation.number,
            "plainly": invitation.plainly,
            "ends": [as_boot(each) for each in orders["ends"]],
        }
        if orders["joins"]:
            boot["joins"] = invitation.library
        # The process that seals marks the directory: with the environment of `record`, and not of this program.
        return write_files(wanted, live, header, table, boot, core=core, name=sys.orig_argv[0], marks=False)
