"""Find recordings in which a program was already resumed: resuming it once more would do everything twice."""

from __future__ import annotations

import calendar
import os
import time
from collections.abc import Iterator
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import CannotResume, ReplaydbgError, UsageError
from replaydbg.log.reader import Recording, open_recording
from replaydbg.store.directory import GROUP, LIVE, SEALED, Store, member_path, sealed_path
from replaydbg.store.process_check import writer_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Continuation(NamedTuple):
    """A recording in which a program goes on that was resumed."""

    name: str
    """Its name in commands, or that of the group that it is in."""
    process: int
    """The process in which the program runs; 0: it has ended."""

    @property
    def text(self) -> str:
        """The fate of the program, and the way to continue it, as a clause."""
        if self.process:
            return f"its program is running again, as {self.name.removesuffix(LIVE)!r} (process {self.process})"
        return (
            f"it was already resumed, as {self.name!r}: resume that one (--force would do everything since then twice)"
        )


class _Course(NamedTuple):
    """The steps by which a run came to be what a recording has of it, from its header."""

    run: str
    """Identifies the run; empty: an old recording has none."""
    checkpoint: int
    """The number of the checkpoint from which its log begins; 0: it begins with the program."""
    resumed: list[Any]
    """The resumptions since then, the oldest first."""

    def goes_on_as(self, other: _Course) -> bool:
        """Whether the other one is the same run, further on."""
        if not self.run or other.run != self.run:
            return False
        if other.checkpoint != self.checkpoint:
            return other.checkpoint > self.checkpoint
        count = len(self.resumed)
        return len(other.resumed) > count and other.resumed[:count] == self.resumed


def check_not_resumed(recording: Recording, name: str, store: Path) -> None:
    """Raise CannotResume if the recording was already resumed, see `find_continuation`."""
    found = find_continuation(recording, store)
    if found is not None:
        raise already_resumed(name, found)


def already_resumed(name: str, continuation: Continuation) -> CannotResume:
    """Return the error for a recording that was already resumed, as `continuation`."""
    return CannotResume(name, continuation.text)


def check_new(output: Path | None) -> None:
    """Raise UsageError if there is a recording with the name `output`: it may be the only one of a program's state."""
    if output is None or not output.name:  # a directory, which is refused where it would be made
        return
    sealed = output.with_name(output.name.removesuffix(GROUP).removesuffix(SEALED) + SEALED)
    if os.path.lexists(sealed):
        raise UsageError(f"{str(sealed)!r} exists already: choose another name with -o.")


def find_continuation(recording: Recording, store: Path) -> Continuation | None:
    """Return the newest recording in which the run of `recording` goes on; None: there is none.

    Headers of recordings are read in the directory of this one, and in the store.
    """
    group = recording.path.absolute().parent
    is_member = group.name.endswith(GROUP)
    number = int(recording.path.name.partition(".")[0]) if is_member else 1
    course, began_ns = _course(recording), _created_ns(recording)
    found: list[tuple[int, int, Path]] = []
    for path in _recordings({group.parent if is_member else group, store.absolute()}, number):
        try:
            written_ns = path.stat().st_mtime_ns
            if written_ns < began_ns:
                continue  # in a large store, opening them all would take seconds
            with open_recording(path) as other:
                if course.goes_on_as(_course(other)) and _was_live(other):
                    found.append((_created_ns(other), written_ns, path))
        except (ReplaydbgError, OSError):
            continue  # it is damaged, or was removed meanwhile: it cannot be resumed instead
    if not found:
        return None
    newest = max(found)[2]
    return Continuation(_name(newest, store), _process_of(newest))


def _process_of(path: Path) -> int:
    """Return the process that writes a recording; 0: none does."""
    try:
        return writer_of((path / "log").stat()) or 0
    except OSError:
        return 0  # it is sealed


def _recordings(places: set[Path], number: int) -> Iterator[Path]:
    """Yield the recordings in the directories `places`; of groups those of the process `number`."""
    for place in places:
        try:
            names = os.listdir(place)  # noqa: PTH208 - names are enough
        except OSError:
            continue  # the store does not exist yet
        for name in names:
            if name.endswith((SEALED, LIVE)):
                yield place / name
            elif name.endswith(GROUP):
                yield member_path(place / name, number)


def _course(recording: Recording) -> _Course:
    raw = recording.header.raw
    run, _, checkpoint = str(raw.get("run", "")).partition("+")
    resumed = raw.get("resumed", [])
    return _Course(run, int(checkpoint) if checkpoint.isdecimal() else 0, resumed if isinstance(resumed, list) else [])


def _created_ns(recording: Recording) -> int:
    """Return when its program started, or was resumed, in nanoseconds since the epoch; 0: not known."""
    try:
        created = time.strptime(str(recording.header.raw.get("created", "")), "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return 0
    return calendar.timegm(created) * 1_000_000_000


def _was_live(recording: Recording) -> bool:
    """Whether the program has done anything after it was resumed: a killed `resume` or standby leaves less."""
    resumed = _course(recording).resumed
    before = resumed[-1].get("event") if resumed and isinstance(resumed[-1], dict) else 0
    log = recording.log_header
    return log is not None and isinstance(before, int) and log.crossings > before


def _name(path: Path, store: Path) -> str:
    """Return the name of a recording, or of the group that it is in, for commands."""
    group = path.parent
    if group.name.endswith(GROUP):
        return group.name.removesuffix(GROUP) if group.parent == store.absolute() else _relative(group)
    # The name of a live directory in the store is that of the sealed file, if there is one, too.
    is_hidden = path.name.endswith(LIVE) and sealed_path(path).exists()
    return _relative(path) if path.parent != store.absolute() or is_hidden else Store(store).name_of(path)


def _relative(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
