"""The recordings that are open: each question names one, and the moment that it is about.

Nothing depends on the question before. What is kept open makes the next question about it quick.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from replaydbg.commands import Prompt
from replaydbg.commands.surface import CollectedText, SourceRow, Uninterrupted
from replaydbg.commands.view import SilentView, View
from replaydbg.config import load_settings
from replaydbg.debugger import Session
from replaydbg.debugger.assertions import frame_to_show
from replaydbg.debugger.session_results import WorkProgress
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.engine.process_memory import MemoryBudget
from replaydbg.errors import UsageError
from replaydbg.groups.group_session import GroupSession
from replaydbg.log.files import held
from replaydbg.log.sealed.origin import is_own
from replaydbg.native import check_core
from replaydbg.render.replay_text import foreign_text

MOST_OPEN = 2
"""Recordings that are kept open: two are compared with each other."""


@dataclass(slots=True)
class OpenRecording:
    """An open recording, and the prompt that nobody sees."""

    prompt: Prompt
    session: Session
    text: CollectedText
    home: int
    """The line at which the program failed, or its end."""
    remarks: list[str]
    """What is to be known of every answer about it."""
    file: tuple[int, ...]
    """Which file it is."""

    @property
    def view(self) -> View:
        """The prompt's state."""
        return self.prompt.view

    def words(self, line: str) -> list[str]:
        """Run a line of the prompt, and return what it prints. Raises ReplaydbgError."""
        self.text.take_lines()
        self.prompt.carry_out(line)
        return self.text.take_lines()

    def go_to(self, at: str | None, frame: int | None, thread: int | None) -> None:
        """Go to a moment, a thread and a frame there; None: the failure, the running one, the one that failed.

        Raises NoSuchMoment and UsageError.
        """
        view, session = self.view, self.session
        if view.session is not session:
            view.select_process(view.group.number_of(session))
        session.seek(self.home if at is None else at)
        view.lane = None if thread == view.here.lane else thread
        known = [each.id for each in view.here.lanes]
        if thread is not None and thread not in known:
            raise UsageError(f"No thread {thread} here; the threads are {', '.join(map(str, known))}.")
        view.frame = frame_to_show(session) if thread is None and frame is None else frame or 0
        number = len(view.frames())
        if view.frame >= max(number, 1):
            raise UsageError(f"frame must be less than {number:,} here (got {view.frame}).")

    def close(self) -> None:
        """End all its processes."""
        self.view.group.close()


class _AgentText(CollectedText):
    """Collects what commands print; lines of source have their number first."""

    def source(self, file: str, lines: Sequence[str], rows: Sequence[SourceRow]) -> None:
        """Add lines of a file, with how often each ran."""
        for row in rows:
            hits = f"({row.hits}x)" if row.hits else ""
            self.line(f"{'->' if row.is_current else '  '} {row.number:>4} {hits:>6}  {row.text}".rstrip())


class OpenRecordings:
    """Opens recordings, and keeps the last ones open. For one thread."""

    def __init__(self, check: Callable[[], None], progressed: Callable[[WorkProgress], None]) -> None:
        """`check` and `progressed` raise Cancelled."""
        self._check, self._progressed = check, progressed
        self._open: dict[Path, OpenRecording] = {}

    def at(self, path: Path, name: str) -> OpenRecording:
        """Return the recording at a path, opened; `name`: how it is named. Raises what opening does."""
        check_core()
        found = self._open.pop(path, None)
        if found is not None and found.file != _file(path):
            found.close()  # another one is there now
            found = None
        if found is None:
            while len(self._open) >= MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            found = self._opened(path, name)
        self._open[path] = found
        return found

    def drop(self, found: OpenRecording) -> None:
        """Close a recording whose processes were lost; the next question opens it again."""
        self._open = {path: each for path, each in self._open.items() if each is not found}
        found.close()

    def close(self) -> None:
        """End all processes."""
        while self._open:
            self._open.popitem()[1].close()

    def _opened(self, path: Path, name: str) -> OpenRecording:
        settings = load_settings({})
        opens = partial(Session, progress=self._progressed, memory=MemoryBudget(settings.session_memory))
        with held(path):  # from the first look at it until the session has it open, `gc` must not remove it
            remarks = [] if is_own(path) else [foreign_text(path, name)]
            file = _file(path)
            session = opens(path, ahead=True)
        text = _AgentText(self._check)
        view = SilentView(session, text, GroupSession(session, opens), own_code=OwnCode(settings.my_code))
        prompt = Prompt(session, text, Uninterrupted(), view=view)
        remarks += [each for each in (session.limitations.divergence, session.limitations.text) if each]
        return OpenRecording(prompt, session, text, session.here.count, remarks, file)


def _file(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
