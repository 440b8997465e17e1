"""The worker's side of the terminal UI: a session, the commands that move it, and the data to be shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from textual.message import Message

from replaydbg.commands import Prompt
from replaydbg.commands.surface import SourceRow
from replaydbg.commands.view import View
from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Moment, WorkProgress
from replaydbg.errors import Cancelled, EngineLost, ForgedMessage, ReplaydbgError, UsageError
from replaydbg.events.show import printable
from replaydbg.tui.messages import WriterFound
from replaydbg.tui.view_model import ConsoleLine, HeapAnswer, Overview, Reply, Scene
from replaydbg.tui.worker import moment_queries
from replaydbg.tui.worker.background_tasks import hits, lane_spans, no_hits, own_exceptions, snapshots
from replaydbg.tui.worker.heap_queries import SnapshotPair, writer_text
from replaydbg.tui.worker.mark_notes import MarkNote, load_notes, save_notes
from replaydbg.tui.worker.run_overview import density, overview
from replaydbg.tui.worker.scene_builder import SceneBuilder
from replaydbg.tui.worker.source_text import source_text

MOST_TRIES = 20
"""Number of restarts of a background task that was cancelled for a request of the user."""


class ConsoleLog:
    """Collects the output of a command, for the console."""

    is_immediate = False

    def __init__(self, check: Callable[[], None]) -> None:
        """`check` raises Cancelled if the running command is to be cancelled."""
        self.check = check
        self._lines: list[ConsoleLine] = []

    def line(self, text: str = "", style: str = "") -> None:
        """Add a line, or several."""
        self.check()
        self._lines += [ConsoleLine(printable(each.expandtabs()), style) for each in text.split("\n")]

    def complain(self, text: str) -> None:
        """Add an error message."""
        self._lines += [ConsoleLine(printable(each), "error") for each in text.split("\n")]

    def settle(self) -> None:
        """Do nothing: the collected output is shown at the end."""

    def source(self, file: str, lines: Sequence[str], rows: Sequence[SourceRow]) -> None:
        """Add lines of a file."""
        for row in rows:
            mark = "->" if row.is_current else "  "
            self.line(f"{row.hits or '':>8} {mark} {row.number:>5}  {row.text}", "bold" if row.is_current else "")

    def take_lines(self) -> tuple[ConsoleLine, ...]:
        """Return the collected output, and clear it."""
        lines, self._lines = tuple(self._lines), []
        return lines


class SilentView(View):
    """A view that does not print its position: the panels show it."""

    def show_here(self, around: int = 0) -> None:
        """Do nothing: the source panel shows it."""

    def show_displays(self) -> None:
        """Do nothing: the panel of the watched expressions shows them."""


class Busy:
    """A stand-in for the prompt's Ctrl-C handling: here the check of the console log cancels a command."""

    @contextmanager
    def busy(self, session: Session | None = None) -> Iterator[None]:
        """Context of a running operation; nothing has to be done."""
        yield


@dataclass(slots=True)
class _BackgroundTask:
    """A background task."""

    begin: Callable[[], Generator[Message | None]]
    steps: Generator[Message | None]
    tries: int
    """Number of restarts."""


class SessionHost:
    """A session with an invisible prompt, and a record of what was already shown of it. For one thread."""

    def __init__(
        self,
        path: Path,
        progress: Callable[[WorkProgress], None],
        check: Callable[[], None],
        *,
        memory: int = 0,
    ) -> None:
        """Open the recording; see `Session` for what it raises."""
        self._path, self._progress, self._memory = path, progress, memory
        self.session = Session(path, progress=progress, memory=memory)
        self.console_log = ConsoleLog(check)
        self.prompt = Prompt(self.session, self.console_log, Busy(), view=SilentView(self.session, self.console_log))
        self._scene_builder = SceneBuilder()
        self._sent: set[str] = set()
        self.memory = SnapshotPair()
        """The snapshots of the last heap comparison."""
        self._compared: HeapAnswer | None = None
        self._writers: dict[str, str] = {}
        """The writers of changed values in that comparison, as far as known."""
        self._left = 0
        """The position to which the session must return; 0: it is there."""
        self._is_scrubbing = False
        self._known_points: frozenset[int] = frozenset()
        self._background: deque[_BackgroundTask] = deque()
        self._add_background_task(lambda: lane_spans(self.session))
        self._add_background_task(lambda: snapshots(self.session))
        self._kept = load_notes(path)
        self._take_notes()

    def _take_notes(self) -> None:
        for note in self._kept:
            try:
                self.session.marks.add(note.name, Moment(note.event, note.step))
            except UsageError:
                continue  # another program wrote it there; our own file will not contain it
            self._scene_builder.notes[note.name] = note.text

    def _keep_notes(self) -> None:
        """Save the marks if they have changed."""
        notes = self._scene_builder.notes
        marks = tuple(
            MarkNote(name, moment.event, moment.step, notes.get(name, ""))
            for name, moment in self.session.marks.moments.items()
        )
        if marks == self._kept:
            return
        self._kept = marks
        try:
            save_notes(self._path, marks)
        except OSError as error:
            raise ReplaydbgError(
                f"Cannot save the marks; they last only for this session: {error.strerror}."
            ) from error

    def close(self) -> None:
        """End all its processes."""
        self.session.close()

    @property
    def view(self) -> View:
        """The prompt's view of the session."""
        return self.prompt.view

    def restart(self) -> None:
        """Reopen the recording, and restore the position, the marks and the breakpoints."""
        lost = self.session
        lost.close()
        self.session = Session(self._path, progress=self._progress, memory=self._memory)
        self.session.take_over(lost)
        view = self.view
        view.session, view.frame, view.lane = self.session, 0, None
        self.session.seek(min(self._left or lost.here.count, self.session.index.total))
        self._left = 0

    # ---- visiting other positions ----

    @contextmanager
    def elsewhere(self, count: int) -> Iterator[None]:
        """Move the session to a line of the run for a query; afterwards it returns."""
        self._left = self.session.here.count
        try:
            self.session.seek(count)
            yield
        finally:
            self.come_back()

    def come_back(self) -> None:
        """Return to the original position; if that is cancelled as the query was, it is repeated later."""
        if self._left:
            self.session.seek(self._left)
            self._left = 0

    # ---- data to be shown ----

    def overview(self) -> Overview:
        """Return the data of the run as a whole."""
        found = overview(self.session, self.prompt.vocabulary.names)
        self._add_background_task(lambda: own_exceptions(self.session, found.exceptions))
        return found

    def opening(self, moment: str) -> Reply:
        """Return the opening view: at the failure of the program, or at `moment`."""
        if moment:
            self.session.seek(moment)
        self.view.arrive()
        return self.shown()

    def scene(self) -> Scene:
        """Return the session's present state."""
        return self._scene_builder.scene(self.view)

    def shown(self) -> Reply:
        """Return the present state, with the selected source file if it was not shown before."""
        scene = self.scene()
        files = dict.fromkeys(each.file for each in ([scene.at] if scene.at is not None else []))
        new = [each for each in files if each not in self._sent]
        self._sent.update(new)
        return Reply(
            scene=scene,
            texts=tuple(source_text(self.session, each) for each in new),
            printed=self.console_log.take_lines(),
            is_over=self.prompt.is_over,
        )

    # ---- background tasks ----

    @property
    def has_background_work(self) -> bool:
        """Whether there is a background task."""
        return bool(self._background)

    def run_background_step(self) -> Message | None:
        """Run a small part of a background task; return its result. A cancelled task is restarted later."""
        work = self._background[0]
        try:
            return next(work.steps)
        except StopIteration:
            self._background.popleft()
        except Cancelled:
            self._background.popleft()
            if work.tries < MOST_TRIES:
                self._add_background_task(work.begin, tries=work.tries + 1)
        except (ReplaydbgError, OSError):
            self._background.popleft()  # unreadable data is reported to direct queries only
        return None

    def _add_background_task(self, begin: Callable[[], Generator[Message | None]], *, tries: int = 0) -> None:
        self._background.append(_BackgroundTask(begin, begin(), tries))

    def _look_for_hits(self) -> None:
        points = {each.number: each for each in self.session.breakpoints}
        for number in self._known_points - points.keys():
            self._add_background_task(partial(no_hits, number))
        for number in points.keys() - self._known_points:
            self._add_background_task(partial(hits, self.session, points[number]))
        self._known_points = frozenset(points)

    # ---- commands ----

    def do(self, line: str) -> Reply:
        """Execute one line of the prompt."""
        if self._is_scrubbing:
            self.view.keep()
            self._is_scrubbing = False
        error = ""
        try:
            self.prompt.carry_out(line.strip())
        except EOFError:
            return Reply(is_over=True)
        except (Cancelled, EngineLost, ForgedMessage):
            raise
        except (ReplaydbgError, RecursionError, MemoryError) as problem:
            # It may have moved before it failed.
            error = str(problem) or type(problem).__name__
        self._keep_notes()
        self._look_for_hits()
        return replace(self.shown(), error=error)

    def toggle(self, expression: str) -> Reply:
        """Expand or collapse the parts of a value."""
        self._scene_builder.toggle(expression)
        return self.shown()

    def scrub(self, count: int) -> Reply:
        """Go to a count of lines; after several of these in a row, `back` returns to the start of the first."""
        if not self._is_scrubbing:
            self.view.keep()
        self._is_scrubbing = True
        first, last = 1, self.session.index.total
        self.session.seek(max(first, min(count, last)))
        self.view.arrive(is_kept=False)
        return self.shown()

    def mark(self, name: str, note: str) -> Reply:
        """Name this moment, with an optional note."""
        self.session.marks.add(name)
        self._scene_builder.notes[name] = note
        self._keep_notes()
        return self.shown()

    def remove_mark(self, name: str) -> Reply:
        """Remove a mark."""
        self.session.marks.remove(name)
        self._scene_builder.notes.pop(name, None)
        self._keep_notes()
        return self.shown()

    # ---- queries ----

    def ask(self, question: str, *about: object) -> Reply:
        """Run one of QUESTIONS, all of which leave the session's position unchanged."""
        return Reply(answer=moment_queries.QUESTIONS[question](self.view, *about))

    def compare(self, since: str, until: str, scope: str) -> Reply:
        """Compare the heaps of two moments; without `until`, with the present one."""
        answer = self._compared = self.memory.diff(self.view, since, until, scope)
        self._writers.clear()
        self._add_background_task(lambda: self._find_writers(answer))
        return Reply(answer=answer)

    def _find_writers(self, answer: HeapAnswer) -> Generator[Message | None]:
        """Find the writes of the listed changed values; after a restart known results are kept."""
        asked = [each.path for each in answer.rows if each.is_changed and each.path and each.mark != "-"]
        yield None
        with closing(self.memory.writers(self.view, [each for each in asked if each not in self._writers])) as found:
            # The recorded history does not explain another run's values.
            while self._compared is answer and not self.view.here.is_changed:
                path, write = next(found, ("", None))
                if not path:
                    return
                # Empty: the writer cannot be determined, and is shown as such.
                self._writers[path] = writer_text(write) if write is not None else ""
                yield WriterFound(path, self._writers[path])

    def about_object(self, path: str) -> Reply:
        """Return the facts about an object of the later snapshot."""
        return Reply(answer=self.memory.about(self.view, path, self.elsewhere))

    def who_wrote_object(self, path: str) -> Reply:
        """Return who wrote the value at a path of the later snapshot."""
        return Reply(
            answer=moment_queries.about_write(self.view, self.memory.who_wrote(self.view, path, self.elsewhere))
        )

    def heap_here(self) -> Reply:
        """Return the present heap, for a comparison with another recording."""
        return Reply(answer=self.memory.held(self.view))

    def go_to_write(self, path: str) -> Reply:
        """Go to the last write of the value at a path of the later snapshot."""
        write = self.memory.who_wrote(self.view, path, self.elsewhere)
        self.session.seek(write.count)
        self.view.arrive()
        return self.shown()

    def density(self, first: int, last: int) -> Reply:
        """Return the number of events in stretches between two lines of the run."""
        return Reply(answer=density(self.session, first, last))

    def text_of(self, file: str) -> Reply:
        """Return a source file for the source panel."""
        self._sent.add(file)
        return Reply(texts=(source_text(self.session, file),))
