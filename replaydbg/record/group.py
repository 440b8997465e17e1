"""Record a program together with its children: the directory of the group, and the process that seals."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from replaydbg.config import Settings
from replaydbg.errors import CannotRecord, Corrupt, UsageError
from replaydbg.events.run_facts import command_of
from replaydbg.launch import interpreter
from replaydbg.launch.interruption import ENDING
from replaydbg.log.group import (
    FACTS,
    GROUP,
    ORDERS,
    PAGE,
    WAKE,
    Group,
    GroupProcess,
    new_page,
    page_rows,
    read_group,
    size_of_group,
    write_group,
)
from replaydbg.native import join_library
from replaydbg.record.place import check_replaceable, reason_of, removed_unless_begun
from replaydbg.store.directory import LIVE, SEALED, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from replaydbg.gates.row import Row
    from replaydbg.launch.process import Ended
    from replaydbg.log.json_data import HeaderData
    from replaydbg.record.result import RecordResult
    from replaydbg.record.start import Wishes


_CONTROL = 3
"""The descriptor by which the process that seals hears from the launcher."""


class RecordedGroup:
    """The group that is being recorded: a directory, and in it the live directory of its first process."""

    def __init__(self, output: Path | None, settings: Settings, *, joins: bool, blocks: Path | None = None) -> None:
        """Make it; `joins`: Python programs that are started join it; `blocks`: see `record`.

        Raises CannotRecord, NotBuilt, or UsageError if they cannot be asked to.
        """
        self._library = library_for("--children=python", "use --children=fork") if joins else None
        self._identity = os.urandom(16).hex()
        self._blocks = blocks
        self._sealer: _Sealer | None = None
        try:
            store = Store(settings.store)
            directory = store.create_group().absolute() if output is None else _named(output.absolute())
        except OSError as error:
            raise CannotRecord(str(output or settings.store), reason_of(error)) from error
        self.live = directory / f"1{LIVE}"
        """The live directory of the first process."""
        try:
            self.live.mkdir(mode=0o700)
            new_page(directory / PAGE, settings.max_size)
            os.mkfifo(directory / WAKE, 0o600)
        except OSError as error:
            self._remove()
            raise CannotRecord(str(directory), reason_of(error)) from error

    @contextmanager
    def removed_unless_begun(self) -> Iterator[None]:
        """Remove the group if the block raises before the program has a log."""
        try:
            with removed_unless_begun(self.live):
                yield
        except BaseException:
            self.finish(None)
            if not self.live.is_dir():
                self._remove()
            raise

    def describe(self, header: HeaderData, outputs: tuple[int, int]) -> None:
        """Add the group's fields to the header of the first process; `outputs` are its standard output and error."""
        header["name"] = f"{self.live.parent.name.removesuffix(GROUP)}/1"
        header["group"] = self._identity
        header["process"] = 1
        header["outputs"] = [interpreter.stream_identity(fd) for fd in outputs]

    def as_boot(self) -> dict[str, object]:
        """Return the core's orders."""
        joins = {} if self._library is None else {"joins": os.fsencode(self._library)}
        return {"group": os.fsencode(self.live.parent / PAGE), "process": 1, **joins}

    def invite(self, wishes: Wishes, rows: list[Row], tests: dict[str, int]) -> None:
        """Write what a Python that joins has to know; `rows` are gates of other packages. Raises CannotRecord.

        Also if the programs that are started do not: one may by `record --join`.
        """
        orders = {
            "group": self._identity,
            "boot": boot_id(),
            "joins": self._library is not None,
            "name": self.live.parent.name.removesuffix(GROUP),
            "wishes": list(wishes),
            "rows": [list(row) for row in rows],
            "tests": tests,
        }
        try:
            (self.live.parent / ORDERS).write_text(json.dumps(orders), encoding="utf-8")
        except OSError as error:
            raise CannotRecord(str(self.live.parent), reason_of(error)) from error

    def start_sealer(self, header: HeaderData) -> None:
        """Start the process that seals the recordings of children. Raises CannotRecord."""
        command = command_of(header["kind"], header["target"], header["argv"])
        self._sealer = _Sealer(self.live.parent, self._identity, command, self._blocks)

    def seal(self, ended: Ended, seconds: float) -> RecordResult:
        """Seal the recording of the first process, and wait until those of ended children are sealed.

        Raises CannotRecord, and leaves nothing, if the program did not run.
        """
        # Imported here: it is loaded while the program runs.
        from replaydbg.log.group_blocks import common_of
        from replaydbg.record.sealing import seal_recording

        directory = self.live.parent
        rows: list[GroupProcess] = []
        with suppress(OSError, Corrupt):  # somebody has removed the group
            rows = page_rows(directory)[0]
        try:
            result = seal_recording(self.live, ended, seconds, common=common_of(directory, 1, rows))
        except CannotRecord:
            self.finish(None)
            self._remove()
            raise
        self.finish(ended.status)
        if not (directory / FACTS).exists():
            return result
        return result._replace(group=read_group(directory), size=size_of_group(directory))

    def finish(self, status: int | None) -> None:
        """Wait until the recordings of children that have ended are sealed; `status` is the program's."""
        if self._sealer is not None:
            self._sealer.finish(status)
            self._sealer = None

    def _remove(self) -> None:
        for name in (PAGE, WAKE, ORDERS, FACTS):
            (self.live.parent / name).unlink(missing_ok=True)
        for each in (self.live, self.live.parent):
            if each.is_dir() and not any(each.iterdir()):
                each.rmdir()


def library_for(option: str, instead: str = "") -> str:
    """Return the path of the library by which programs join, for an option. Raises NotBuilt, or UsageError."""
    path = join_library(interpreter.soabi())
    if " " in path or ":" in path:
        raise UsageError(
            f"{option} cannot be used: the path of replaydbg's library contains a space or a colon ({path!r}), and "
            f"LD_PRELOAD cannot name it. Install replaydbg elsewhere{f', or {instead}' if instead else ''}."
        )
    return path


def boot_id() -> str:
    """Return what identifies this start of the system; empty: unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _named(output: Path) -> Path:
    if not output.name.endswith(GROUP):
        check_replaceable(output)
    name = output.name.removesuffix(GROUP).removesuffix(SEALED) + GROUP
    directory = output.with_name(name)
    if os.path.lexists(directory):
        raise CannotRecord(str(directory), "it exists already")
    directory.mkdir(mode=0o700)
    return directory


class _Sealer:
    """The process that seals the recordings of children, each when it has ended; it outlives us if children do."""

    def __init__(self, directory: Path, identity: str, argv: list[str], blocks: Path | None) -> None:
        # Imported here: only groups need it.
        import socket

        first = GroupProcess(1, 0, 0, 0, "program", argv, False, None, "", "1.rdbg", "")
        try:
            write_group(directory, Group(identity, [first], 0, False))
            ours, its = socket.socketpair()
            self._pid = os.fork()
        except OSError as error:
            raise CannotRecord(str(directory), reason_of(error)) from error
        if self._pid == 0:
            ours.close()
            _be_the_sealer(its.detach(), directory, blocks)
        its.close()
        self._control: socket.socket = ours

    def finish(self, status: int | None) -> None:
        """Return when all recordings of processes that have ended are sealed; `status` is the first program's.

        None: it did not start.
        """
        with suppress(OSError):  # the sealer was killed: live directories stay
            self._control.sendall(b"none\n" if status is None else b"%d\n" % status)
            self._control.recv(1)
        self._control.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, os.WNOHANG)


def _be_the_sealer(control: int, directory: Path, blocks: Path | None) -> None:
    """Become the process that seals: with nothing of ours open that somebody could wait for."""
    try:
        os.setsid()
        os.nice(5)  # the program comes first
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        if control != _CONTROL:  # where standard input is closed, it has this number already
            os.dup2(control, _CONTROL, inheritable=False)
        null = os.open(os.devnull, os.O_RDWR)
        for target in (0, 1, 2):
            os.dup2(null, target)
        os.closerange(_CONTROL + 1, os.sysconf("SC_OPEN_MAX"))
        # Imported here: it takes long, and the program starts meanwhile.
        from replaydbg.record.group_sealer import seal_group

        os.chdir("/")  # somebody may want to remove the directory, or to unmount it
        seal_group(directory, _CONTROL, blocks)
    finally:
        os._exit(0)
