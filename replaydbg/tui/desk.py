"""The worker's side of the terminal UI: a session, the words that move it, and what is to be shown of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from textual.message import Message

from replaydbg.commands import Prompt
from replaydbg.commands.surface import Row
from replaydbg.commands.view import View
from replaydbg.debugger import Session
from replaydbg.debugger.values import Moment, Progress
from replaydbg.errors import Cancelled, EngineLost, ForgedMessage, ReplaydbgError, UsageError
from replaydbg.events.show import printable
from replaydbg.tui import questions
from replaydbg.tui.gather import Gatherer
from replaydbg.tui.memory import Memory, writer_text
from replaydbg.tui.messages import WriterFound
from replaydbg.tui.notes import Note, load_notes, save_notes
from replaydbg.tui.overview import density, overview
from replaydbg.tui.quiet import hits, lane_spans, no_hits, own_exceptions, snapshots
from replaydbg.tui.scene import HeapAnswer, Overview, Reply, Said, Scene
from replaydbg.tui.sourcefile import source_text

MOST_WRITERS = 10
"""Changed values of which it is looked who wrote them: each is a search backwards through the run."""

MOST_TRIES = 20
"""So often what nobody waits for is begun anew, when somebody waited for something else meanwhile."""


class Scribe:
    """Keeps what a line says, for the console."""

    def __init__(self, check: Callable[[], None]) -> None:
        """`check` raises Cancelled if what runs is given up."""
        self.check = check
        self._said: list[Said] = []

    def line(self, text: str = "", style: str = "") -> None:
        """Keep a line, or several."""
        self.check()
        self._said += [Said(printable(each.expandtabs()), style) for each in text.split("\n")]

    def complain(self, text: str) -> None:
        """Keep a sentence about what could not be done."""
        self._said += [Said(printable(each), "error") for each in text.split("\n")]

    def settle(self) -> None:
        """Nothing is to be done: all is shown at the end."""

    def source(self, file: str, lines: Sequence[str], rows: Sequence[Row]) -> None:
        """Keep lines of a file."""
        for row in rows:
            mark = "->" if row.is_current else "  "
            self.line(f"{row.hits or '':>8} {mark} {row.number:>5}  {row.text}", "bold" if row.is_current else "")

    def taken(self) -> tuple[Said, ...]:
        """Return what was said, and begin anew."""
        said, self._said = tuple(self._said), []
        return said


class SilentView(View):
    """Where it has arrived is drawn by the panels, so that nothing is said of it."""

    def show_here(self, around: int = 0) -> None:
        """The source panel shows it."""

    def show_displays(self) -> None:
        """The panel of the watched expressions shows them."""


class Busy:
    """What gives up a line is the check of the scribe."""

    @contextmanager
    def busy(self, session: Session | None = None) -> Iterator[None]:
        """Do nothing else meanwhile."""
        yield


@dataclass(slots=True)
class _Quiet:
    """Something to be found out that nobody waits for."""

    begin: Callable[[], Generator[Message | None]]
    steps: Generator[Message | None]
    tries: int
    """How often it was begun before."""


class Desk:
    """A session with a prompt that nobody sees, and what was shown of it already. For one thread."""

    def __init__(
        self,
        path: Path,
        progress: Callable[[Progress], None],
        check: Callable[[], None],
        *,
        memory: int = 0,
    ) -> None:
        """Open the recording; see `Session` for what it raises."""
        self._path, self._progress, self._memory = path, progress, memory
        self.session = Session(path, progress=progress, memory=memory)
        self.scribe = Scribe(check)
        self.prompt = Prompt(self.session, self.scribe, Busy(), view=SilentView(self.session, self.scribe))
        self._gatherer = Gatherer()
        self._sent: set[str] = set()
        self.memory = Memory()
        """The snapshots of the heap that were compared last."""
        self._compared: HeapAnswer | None = None
        self._writers: dict[str, str] = {}
        """Where changed values of that were written, as far as it is known."""
        self._left = 0
        """Where the session is to come back to; 0: it is there."""
        self._is_scrubbing = False
        self._known_points: frozenset[int] = frozenset()
        self._quiet: deque[_Quiet] = deque()
        self._quietly(lambda: lane_spans(self.session))
        self._quietly(lambda: snapshots(self.session))
        self._kept = load_notes(path)
        self._take_notes()

    def _take_notes(self) -> None:
        for note in self._kept:
            try:
                self.session.mark(note.name, Moment(note.event, note.step))
            except UsageError:
                continue  # somebody else wrote it there; it is kept out of what we write
            self._gatherer.notes[note.name] = note.text

    def _keep_notes(self) -> None:
        """Write the marks down if they are others than before."""
        notes = self._gatherer.notes
        marks = tuple(
            Note(name, moment.event, moment.step, notes.get(name, "")) for name, moment in self.session.marks.items()
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
        """What the prompt looks at."""
        return self.prompt.view

    def restart(self) -> None:
        """Open the recording anew, and go where it stood, with the marks and breakpoints that there were."""
        lost = self.session
        lost.close()
        self.session = Session(self._path, progress=self._progress, memory=self._memory)
        self.session.take_over(lost)
        view = self.view
        view.session, view.frame, view.lane = self.session, 0, None
        self.session.seek(min(self._left or lost.here.count, self.session.index.total))
        self._left = 0

    # ---- being elsewhere for a while ----

    @contextmanager
    def elsewhere(self, count: int) -> Iterator[None]:
        """Let the session stand at a line of the run, to be asked there; then it comes back."""
        self._left = self.session.here.count
        try:
            self.session.seek(count)
            yield
        finally:
            self.come_back()

    def come_back(self) -> None:
        """Go where the session was left; may be cancelled as what was asked there was, and is done later then."""
        if self._left:
            self.session.seek(self._left)
            self._left = 0

    # ---- what is shown ----

    def overview(self) -> Overview:
        """Return what is shown of the run as a whole."""
        found = overview(self.session, self.prompt.vocabulary.names)
        self._quietly(lambda: own_exceptions(self.session, found.exceptions))
        return found

    def opening(self, moment: str) -> Reply:
        """Return what is shown first: where the program failed, or `moment`."""
        if moment:
            self.session.seek(moment)
        self.view.arrive()
        return self.shown()

    def scene(self) -> Scene:
        """Return where the session stands."""
        return self._gatherer.scene(self.view)

    def shown(self) -> Reply:
        """Return where it stands, with the source that is shown there and was not before."""
        scene = self.scene()
        files = dict.fromkeys(each.file for each in ([scene.at] if scene.at is not None else []))
        new = [each for each in files if each not in self._sent]
        self._sent.update(new)
        return Reply(
            scene=scene,
            texts=tuple(source_text(self.session, each) for each in new),
            said=self.scribe.taken(),
            is_over=self.prompt.is_over,
        )

    # ---- what nobody waits for ----

    @property
    def has_quiet_work(self) -> bool:
        """Whether there is something to be found out that nobody waits for."""
        return bool(self._quiet)

    def work_quietly(self) -> Message | None:
        """Do a little of it; return what was found. What is cancelled, since somebody waits, begins anew later."""
        work = self._quiet[0]
        try:
            return next(work.steps)
        except StopIteration:
            self._quiet.popleft()
        except Cancelled:
            self._quiet.popleft()
            if work.tries < MOST_TRIES:
                self._quietly(work.begin, tries=work.tries + 1)
        except (ReplaydbgError, OSError):
            self._quiet.popleft()  # what cannot be read is told to those who ask for it
        return None

    def _quietly(self, begin: Callable[[], Generator[Message | None]], *, tries: int = 0) -> None:
        self._quiet.append(_Quiet(begin, begin(), tries))

    def _look_for_hits(self) -> None:
        points = {each.number: each for each in self.session.breakpoints}
        for number in self._known_points - points.keys():
            self._quietly(partial(no_hits, number))
        for number in points.keys() - self._known_points:
            self._quietly(partial(hits, self.session, points[number]))
        self._known_points = frozenset(points)

    # ---- what is done ----

    def do(self, line: str) -> Reply:
        """Do one line of the prompt's."""
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
            # It may have moved before it came to that.
            error = str(problem) or type(problem).__name__
        self._keep_notes()
        self._look_for_hits()
        return replace(self.shown(), error=error)

    def toggle(self, expression: str) -> Reply:
        """Show the parts of a value, or no longer."""
        self._gatherer.toggle(expression)
        return self.shown()

    def scrub(self, count: int) -> Reply:
        """Go to a count of lines; however often that comes in a row, `back` returns to where it began."""
        if not self._is_scrubbing:
            self.view.keep()
        self._is_scrubbing = True
        first, last = 1, self.session.index.total
        self.session.seek(max(first, min(count, last)))
        self.view.arrive(is_kept=False)
        return self.shown()

    def mark(self, name: str, note: str) -> Reply:
        """Name this moment, and note something of it."""
        self.session.mark(name)
        self._gatherer.notes[name] = note
        self._keep_notes()
        return self.shown()

    def remove_mark(self, name: str) -> Reply:
        """Forget a mark."""
        self.session.remove_mark(name)
        self._gatherer.notes.pop(name, None)
        self._keep_notes()
        return self.shown()

    # ---- what is asked ----

    def ask(self, question: str, *about: object) -> Reply:
        """Put one of QUESTIONS, all of which leave the session where it is."""
        return Reply(answer=questions.QUESTIONS[question](self.view, *about))

    def compare(self, since: str, until: str, scope: str) -> Reply:
        """Compare the heap of two moments; without `until`, with here."""
        answer = self._compared = self.memory.diff(self.view, since, until, scope)
        self._writers.clear()
        self._quietly(lambda: self._find_writers(answer))
        return Reply(answer=answer)

    def _find_writers(self, answer: HeapAnswer) -> Generator[Message | None]:
        """Find out where the first changed values were written; what is known already when it begins anew is kept."""
        asked = [each.path for each in answer.rows if each.is_changed and each.path and each.mark != "-"]
        for path in asked[:MOST_WRITERS]:
            if self._compared is not answer or self.view.here.is_changed:
                return  # of another run than the recorded one nothing would be left
            if path not in self._writers:
                yield None
                try:
                    told = self.memory.who_wrote(self.view, path, self.elsewhere)
                    self._writers[path] = writer_text(told)
                except UsageError:
                    self._writers[path] = ""  # nobody can tell, and that is how it is shown
                yield WriterFound(path, self._writers[path])

    def about_object(self, path: str) -> Reply:
        """Tell what is known of an object of the later snapshot."""
        return Reply(answer=self.memory.about(self.view, path, self.elsewhere))

    def who_wrote_object(self, path: str) -> Reply:
        """Tell who wrote what a path of the later snapshot leads to."""
        return Reply(answer=questions.about_write(self.view, self.memory.who_wrote(self.view, path, self.elsewhere)))

    def heap_here(self) -> Reply:
        """Return what is in memory here, for a comparison with another recording."""
        return Reply(answer=self.memory.held(self.view))

    def go_to_write(self, path: str) -> Reply:
        """Go to where what a path of the later snapshot leads to was written last."""
        told = self.memory.who_wrote(self.view, path, self.elsewhere)
        self.session.seek(told.count)
        self.view.arrive()
        return self.shown()

    def density(self, first: int, last: int) -> Reply:
        """Tell how many events there were in stretches between two lines of the run."""
        return Reply(answer=density(self.session, first, last))

    def text_of(self, file: str) -> Reply:
        """Return a source file, to be looked at."""
        self._sent.add(file)
        return Reply(texts=(source_text(self.session, file),))
