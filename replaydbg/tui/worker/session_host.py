"""The worker's side of the terminal UI: a session, the commands that move it, and the data to be shown."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from textual.message import Message

from replaydbg.commands import Prompt
from replaydbg.commands.completion.completer import complete
from replaydbg.commands.surface import Uninterrupted
from replaydbg.commands.view import SilentView, View
from replaydbg.config import load_settings
from replaydbg.debugger import Session
from replaydbg.debugger.session_results import WorkProgress
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.engine.process_memory import MemoryBudget
from replaydbg.errors import Cancelled, EngineLost, ForgedMessage, ReplaydbgError
from replaydbg.groups.group_session import GroupSession
from replaydbg.groups.messages import MessageEnd
from replaydbg.groups.other_end import go_to_end
from replaydbg.tui.diagram_model import CutMove
from replaydbg.tui.ui_messages import WriterFound
from replaydbg.tui.view_model import AnswerList, HeapAnswer, LineCompletion, Overview, Reply, Scene
from replaydbg.tui.worker import future_queries, group_queries, moment_queries, resource_queries
from replaydbg.tui.worker.background_queue import BackgroundQueue
from replaydbg.tui.worker.background_tasks import hits, lane_spans, no_hits, snapshots, task_times
from replaydbg.tui.worker.cut_diagram import CutDiagram
from replaydbg.tui.worker.heap_follower import HeapFollower
from replaydbg.tui.worker.heap_queries import writer_text
from replaydbg.tui.worker.hidden_prompt import ConsoleLog
from replaydbg.tui.worker.run_overview import density, overview
from replaydbg.tui.worker.shown_process import ShownProcess
from replaydbg.tui.worker.source_text import source_text

_QUERIES = (moment_queries, group_queries, resource_queries, future_queries)
_QUESTIONS = {name: query for module in _QUERIES for name, query in module.QUESTIONS.items()}
"""The queries by name: the drawing thread imports nothing of these modules."""

SHOWN_EVERY = 0.1
"""Seconds within which a position is shown, even if the next key is there already."""


class SessionHost:
    """A session with an invisible prompt, and a record of what was already shown of it. For one thread."""

    def __init__(
        self,
        path: Path,
        progress: Callable[[WorkProgress], None],
        check: Callable[[], None],
        *,
        memory: int = 0,
        is_behind: Callable[[], bool] = lambda: False,
    ) -> None:
        """Open the recording; see `Session` for what it raises. The processes of a group share `memory`.

        `is_behind`: whether another move waits already.
        """
        self._opens = partial(Session, progress=progress, memory=MemoryBudget(memory))
        session = self._opens(path)
        group = GroupSession(session, self._opens)
        self.console_log = ConsoleLog(check)
        settings = load_settings()
        own, is_on = OwnCode(settings.my_code), settings.just_my_code
        view = SilentView(session, self.console_log, group, own_code=own, steps_in_own_code=is_on)
        self.prompt = Prompt(session, self.console_log, Uninterrupted(), view=view)
        self._processes: dict[int, ShownProcess] = {}
        self._sent: set[str] = set()
        self._left = 0
        """The position to which the session must return; 0: it is there."""
        self._is_scrubbing = False
        self._background = BackgroundQueue()
        self._diagram: CutDiagram | None = None
        self._shown_process = -1
        """The number of the process whose overview was shown last."""
        self._heap_follower = HeapFollower()
        self._is_behind, self._shown_at = is_behind, 0.0
        self.is_unshown = False
        """Whether the position was left to be shown by the next move."""
        self._begin_process()

    @property
    def session(self) -> Session:
        """The session of the selected process."""
        return self.view.session

    @property
    def process(self) -> ShownProcess:
        """State of the selected process besides its session."""
        number = self.view.process
        if number not in self._processes:
            self._processes[number] = ShownProcess(self.session)
        return self._processes[number]

    @property
    def losses(self) -> int:
        """The number of processes of all sessions that ended unexpectedly, and were replaced."""
        return sum(each.travel.losses for each in self.view.group.sessions.values())

    def _begin_process(self) -> None:
        """Forget what was shown of another process, and begin the background tasks of the selected one."""
        self._sent.clear()
        self._background.clear()
        # The timeline is empty: their rows are found again.
        self.process.known_points = frozenset()
        session = self.session
        self._background.add(lambda: lane_spans(session))
        self._background.add(lambda: snapshots(session))
        self._background.add(lambda: task_times(session, session.tasks.follower))

    def close(self) -> None:
        """End all its processes."""
        self.view.group.close()

    @property
    def view(self) -> View:
        """The prompt's view of the session."""
        return self.prompt.view

    def restart(self) -> None:
        """Reopen the recording, and restore the position, the marks and the breakpoints."""
        lost = self.session
        lost.close()
        session = self._opens(lost.path)
        session.take_over(lost)
        view = self.view
        view.group.replace(session)
        view.session, view.frame, view.lane = session, 0, None
        session.seek(min(self._left or lost.here.count, session.index.total))
        self._left = 0
        # Those of the lost session have its processes.
        self._begin_process()
        self._look_for_hits()

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
        session, number = self.session, self.view.process
        found = overview(session, self.prompt.vocabulary.names, self.view.own_code, process=str(number or ""))
        self._shown_process, self.process.first = number, found.first
        return found

    def opening(self, moment: str) -> Reply:
        """Return the opening view: at the failure of the program, or at `moment`."""
        if moment:
            self.session.seek(moment)
        self.view.arrive()
        return self.shown()

    def scene(self) -> Scene:
        """Return the session's present state."""
        return self.process.scene_builder.scene(self.view)

    def shown(self) -> Reply:
        """Return the present state, with the selected source file if it was not shown before.

        If another process was selected, its whole run comes with it.
        """
        run = None
        if self.view.process != self._shown_process:
            self._begin_process()
            run = self.overview()
            self._look_for_hits()
        scene = self.scene()
        self._shown_at, self.is_unshown = time.monotonic(), False
        self._heap_follower.arrive()
        self._add_heap_task()
        files = dict.fromkeys(each.file for each in ([scene.at] if scene.at is not None else []))
        new = [each for each in files if each not in self._sent]
        self._sent.update(new)
        return Reply(
            scene=scene,
            texts=tuple(source_text(self.session, each) for each in new),
            printed=self.console_log.take_lines(),
            is_over=self.prompt.is_over,
            overview=run,
        )

    def after_cancel(self) -> Reply:
        """Return the present state after a cancelled operation, which may have selected another process."""
        return self.shown() if self.view.process != self._shown_process else Reply(scene=self.scene())

    # ---- background tasks ----

    @property
    def has_background_work(self) -> bool:
        """Whether there is a background task."""
        return bool(self._background)

    def run_background_step(self) -> Message | None:
        """Run a small part of a background task; return its result. A cancelled task is restarted later."""
        return self._background.run_step()

    def _look_for_hits(self) -> None:
        points = {each.number: each for each in self.session.breakpoints}
        known = self.process.known_points
        for number in known - points.keys():
            self._background.add(partial(no_hits, number))
        for number in points.keys() - known:
            self._background.add(partial(hits, self.session, points[number]))
        self.process.known_points = frozenset(points)

    # ---- commands ----

    def do(self, line: str, *, columns: int = 0) -> Reply:
        """Execute one line of the prompt; `columns`: the width of what it prints."""
        self.console_log.columns = columns
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
        self.process.keep_notes(self.session)
        self._look_for_hits()
        if not error and self._may_wait():
            self.is_unshown = True
            return Reply(printed=self.console_log.take_lines(), is_over=self.prompt.is_over)
        return replace(self.shown(), error=error)

    def _may_wait(self) -> bool:
        """Whether the position need not be shown: that takes longer than a step, and another move waits already."""
        is_known = self.view.process == self._shown_process
        return is_known and time.monotonic() < self._shown_at + SHOWN_EVERY and self._is_behind()

    def toggle(self, expression: str) -> Reply:
        """Expand or collapse the parts of a value."""
        self.process.scene_builder.toggle(expression)
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
        self.process.scene_builder.notes[name] = note
        self.process.keep_notes(self.session)
        return self.shown()

    def remove_mark(self, name: str) -> Reply:
        """Remove a mark."""
        self.session.marks.remove(name)
        self.process.scene_builder.notes.pop(name, None)
        self.process.keep_notes(self.session)
        return self.shown()

    # ---- queries ----

    def complete(self, line: str, cursor: int) -> Reply:
        """Return what completes a line of the prompt at its cursor."""
        found = complete(self.prompt, line, cursor, silent=False)
        return Reply(answer=LineCompletion(found.start, found.words, found.common))

    def ask(self, question: str, *about: object) -> Reply:
        """Run one of the queries by its name; they leave the session's position unchanged."""
        return Reply(answer=_QUESTIONS[question](self.view, *about))

    def jump(self, *, is_receive: bool) -> Reply:
        """Go to the other end of what the process receives, or sends, here; if there are several, return a list."""
        ends = group_queries.other_ends(self.view, is_receive=is_receive)
        if isinstance(ends, AnswerList):
            return Reply(answer=ends)
        return self.go_to_end(ends)

    def open_diagram(self) -> Reply:
        """Return the space-time diagram of the group, with the cut at this position."""
        if self._diagram is None:
            self._diagram = CutDiagram(self.view)
        return Reply(answer=self._diagram.open())

    def move_cut(self, moves: deque[CutMove]) -> Reply:
        """Move the diagram's cut by the keys typed by now, which are taken out; no answer: there are none."""
        taken = [moves.popleft() for _ in range(len(moves))]
        return Reply(answer=self._diagram.move(taken) if self._diagram is not None and taken else None)

    def go_to_end(self, end: MessageEnd) -> Reply:
        """Go to a send or a receive, in its process."""
        self.view.keep()
        self.view.select_process(end.process)
        go_to_end(self.session, end)
        self.view.arrive()
        return self.shown()

    def compare(self, since: str, until: str, scope: str) -> Reply:
        """Compare the heaps of two moments; without `until`, with the present one."""
        process = self.process
        answer = process.compared = process.memory.diff(self.view, since, until, scope)
        process.writers.clear()
        self._background.add(lambda: self._find_writers(process, answer))
        return Reply(answer=answer)

    def follow_heap(self) -> Reply:
        """Show from now on what is in memory at the present position, in place of a comparison."""
        self._heap_follower.begin(self.process)
        self._add_heap_task()
        return Reply()

    def _add_heap_task(self) -> None:
        if self._heap_follower.is_on and not self._background.has(self._heap_steps):
            self._background.add(self._heap_steps)

    def _heap_steps(self) -> Generator[Message | None]:
        return self._heap_follower.steps(self.view, self.process)

    def _find_writers(self, process: ShownProcess, answer: HeapAnswer) -> Generator[Message | None]:
        """Find the writes of the listed changed values; after a restart known results are kept."""
        asked = [each.path for each in answer.rows if each.is_changed and each.path and each.mark != "-"]
        yield None
        wanted = [each for each in asked if each not in process.writers]
        with closing(process.memory.writers(self.view, wanted)) as found:
            # The recorded history does not explain another run's values.
            while process.compared is answer and not self.view.here.is_changed:
                path, write = next(found, ("", None))
                if not path:
                    return
                # Empty: the writer cannot be determined, and is shown as such.
                process.writers[path] = writer_text(write) if write is not None else ""
                yield WriterFound(path, process.writers[path])

    def growth(self) -> Reply:
        """Show how memory grows over the run, until `follow_heap` is called."""
        process = self.process
        process.compared = process.memory.growth(self.view)
        return Reply(answer=process.compared)

    def icicle(self) -> Reply:
        """Return what keeps memory alive here, as boxes in boxes."""
        return Reply(answer=self.process.memory.icicle(self.view))

    def about_object(self, path: str, *, is_drawn: bool = False) -> Reply:
        """Return the facts about an object of the later snapshot, or of that of the icicle graph."""
        return Reply(answer=self.process.memory.about(self.view, path, self.elsewhere, is_drawn=is_drawn))

    def who_wrote_object(self, path: str) -> Reply:
        """Return who wrote the value at a path of the later snapshot."""
        return Reply(
            answer=moment_queries.about_write(self.view, self.process.memory.who_wrote(self.view, path, self.elsewhere))
        )

    def heap_here(self) -> Reply:
        """Return the present heap, for a comparison with another recording."""
        return Reply(answer=self.process.memory.held(self.view))

    def go_to_write(self, path: str) -> Reply:
        """Go to the last write of the value at a path of the later snapshot."""
        write = self.process.memory.who_wrote(self.view, path, self.elsewhere)
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
