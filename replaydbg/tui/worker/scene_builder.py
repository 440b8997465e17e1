"""Collect the data of the session's present position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from replaydbg.commands.task_tree import task_tree
from replaydbg.commands.view import View
from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Variable
from replaydbg.debugger.source.source_files import is_library
from replaydbg.engine.reports import Frame
from replaydbg.errors import AskFailed, Cancelled, EngineLost, ForgedMessage, ReplaydbgError
from replaydbg.events.show import printable
from replaydbg.render import texts
from replaydbg.tui.view_model import FrameRow, LaneRow, MarkRow, PointRow, Scene, TaskRow, ValueRow

MOST_FRAMES = 200
FRAMES_BEHIND = 50
MOST_PARTS = 200
MOST_EVENTS = 50_000
"""Number of events above which the time is not shown: the recording would have to be read as a whole."""

_PLUMBING = ("module", "function", "type", "builtin_function_or_method", "ABCMeta", "EnumType")
"""The types of most values in a module's namespace; they are listed last."""


class SceneBuilder:
    """Creates scenes, and marks values that changed since the previous stop."""

    def __init__(self) -> None:
        self._stop: tuple[int, bool] | None = None
        self._before: dict[object, dict[str, str]] = {}
        self._now: dict[object, dict[str, str]] = {}
        self._open: set[str] = set()
        self.notes: dict[str, str] = {}
        """The notes of marks."""

    def toggle(self, expression: str) -> None:
        """Expand or collapse the parts of a value."""
        self._open ^= {expression}

    def scene(self, view: View) -> Scene:
        """Return the present state of the session of `view`."""
        session, here = view.session, view.here
        stop = (here.count, here.is_changed)
        if stop != self._stop:
            self._before, self._now, self._stop = self._now, {}, stop
        stack = session.ask.stack(view.lane)
        view.frame = min(view.frame, max(len(stack) - 1, 0))
        # For a frame further out, the frames up to the selected one, with a few of its callers.
        frames = stack[: max(MOST_FRAMES, view.frame + FRAMES_BEHIND)]
        values, error = self._values(view)
        seconds = session.time_at(here.moment) if session.index.events <= MOST_EVENTS else None
        return Scene(
            count=here.count,
            total=here.total,
            moment=texts.moment_text(here.moment),
            percent=texts.percent_text(here.count, here.total),
            event=here.moment.event,
            lane=printable(texts.lane_text(here.lane, here.lanes)),
            lane_number=here.lane,
            place=short_place(session, here.top.file, here.top.line, here.top.function) if here.top is not None else "",
            reason=printable(texts.reason_text(session, here)),
            why=here.why,
            is_changed=here.is_changed,
            seconds=seconds,
            frames=tuple(_frame(session, each) for each in frames),
            frame=view.frame,
            depth=len(stack),
            lanes=tuple(_lanes(view)),
            tasks=tuple(_tasks(view)),
            values=values,
            points=tuple(
                PointRow(each.number, printable(str(each)), each.file, each.line, each.enabled)
                for each in session.breakpoints
            ),
            marks=tuple(
                MarkRow(name, texts.moment_text(moment), session.index.count(moment), self.notes.get(name, ""))
                for name, moment in session.marks.moments.items()
            ),
            direction="backwards" if view.is_backward else "",
            is_commanded=bool(view.commanded),
            values_error=error,
        )

    # ---- values ----

    def _values(self, view: View) -> tuple[tuple[ValueRow, ...], str]:
        """Return the watched expressions, then the variables; and why the latter are not available."""
        watched = tuple(self._watched(view))
        try:
            variables = view.session.ask.variables(**view.at) if view.frames() else ()
            error = ""
        except AskFailed as failed:
            variables, error = (), failed.reason
        frames = view.session.ask.stack(view.lane)
        at = frames[view.frame] if view.frame < len(frames) else None
        key = (view.lane or view.here.lane, at.started, at.first_line) if at is not None else None
        shown = [each for each in variables if not (each.name.startswith("__") and each.name.endswith("__"))]
        shown.sort(key=lambda each: each.type in _PLUMBING)
        rows = [row for each in shown for row in self._with_parts(view, each, each.name, key, 0)]
        gone = self._gone(key, {each.name for each in shown}) if not error else []
        return (*watched, *rows, *gone), error

    def _watched(self, view: View) -> Iterator[ValueRow]:
        for number, source in view.displays.items():
            try:
                evaluated = view.evaluate(source)
            except (Cancelled, EngineLost, ForgedMessage):
                raise
            except ReplaydbgError as error:
                yield ValueRow(source, f"({error})", watch=number, expression=source)
                continue
            text = evaluated.value.text if evaluated.value is not None else f"({evaluated.error})"
            mark, old = self._became(("watch", number), source, printable(text))
            digest = evaluated.value.digest if evaluated.value is not None else 0
            yield ValueRow(
                printable(source), printable(text), mark, old, watch=number, expression=source, digest=digest
            )

    def _with_parts(
        self, view: View, variable: Variable, expression: str, key: object, depth: int
    ) -> Iterator[ValueRow]:
        text = printable(variable.text)
        mark, old = self._became(key, expression, text) if variable.is_shown else (" ", "")
        is_open = expression in self._open and bool(variable.parts)
        name = printable(variable.name)
        yield ValueRow(name, text, mark, old, 0, variable.parts, depth, expression, is_open, variable.digest)
        if not is_open or depth > 20:
            return
        try:
            parts = view.session.ask.parts(expression, **view.at)
        except AskFailed:
            return  # a value that cannot be evaluated has no parts
        for each in parts[:MOST_PARTS]:
            if not each.name:  # an item of a set, which no expression names
                yield ValueRow("", printable(each.text), depth=depth + 1)
                continue
            yield from self._with_parts(view, each, expression + each.name, key, depth + 1)

    def _became(self, key: object, name: str, text: str) -> tuple[str, str]:
        self._now.setdefault(key, {})[name] = text
        before = self._before.get(key)
        if before is None:
            return " ", ""
        if name not in before:
            is_part_shown_first = any(name.startswith(each) and name != each for each in before) and name not in before
            return (" " if is_part_shown_first else "+"), ""
        return ("~", before[name]) if before[name] != text else (" ", "")

    def _gone(self, key: object, names: set[str]) -> list[ValueRow]:
        before: Mapping[str, str] = self._before.get(key) or {}
        known = [name for name in before if name.isidentifier() and name not in names]
        return [ValueRow(name, "", "-", before[name], expression=name) for name in known]


def _frame(session: Session, frame: Frame) -> FrameRow:
    return FrameRow(
        frame.file,
        short_place(session, frame.file, frame.line, frame.function),
        frame.line,
        frame.function,
        printable(session.source_line(frame.file, frame.line)),
        is_library(frame.file),
    )


def short_file(session: Session, file: str, parts: int = 1) -> str:
    """Return a file's name for a narrow panel: for one outside the working directory the last parts of its path."""
    text = texts.file_text(session, file)
    return printable("/".join(PurePath(text).parts[-parts:]) if text.startswith("/") else text)


def short_place(session: Session, file: str, line: int, function: str) -> str:
    """Return a place for a narrow panel."""
    return f"{short_file(session, file)}:{line} {printable(function)}"


def _lanes(view: View) -> Iterator[LaneRow]:
    shown = view.here.lane if view.lane is None else view.lane
    for lane in view.here.lanes:
        runs = lane.id == view.here.lane
        state = "runs" if runs else f"waits for {lane.waits_for}" if lane.waits_for else "runnable"
        top = lane.top
        place = short_place(view.session, top.file, top.line, top.function) if top is not None else ""
        yield LaneRow(lane.id, printable(lane.name), printable(state), place, lane.id == shown)


def _tasks(view: View) -> Iterator[TaskRow]:
    try:
        tasks = view.session.ask.tasks()
    except AskFailed:
        return  # without an answer: as if there were no tasks
    for each in task_tree(tasks):
        places = () if each.is_again else tuple(short_place(view.session, *place) for place in each.task.frames)
        state = "(see above)" if each.is_again else printable(each.state)
        yield TaskRow(printable(each.task.name), state, places, each.depth)
