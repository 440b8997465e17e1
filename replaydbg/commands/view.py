"""The state of a prompt: a session, the selected frame and thread, and the positions visited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, fields
from typing import TypedDict

from replaydbg.commands.surface import SourceRow, Surface
from replaydbg.debugger import Session
from replaydbg.debugger.assertions import frame_to_show
from replaydbg.debugger.session_results import Evaluation, Frame, Here, Moment
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.errors import UsageError
from replaydbg.groups.group_session import GroupSession
from replaydbg.render import texts

AROUND = 3
"""Lines of source on both sides of the current one where something new is reached."""


class _Frame(TypedDict):
    frame: int
    lane: int | None


@dataclass(slots=True, kw_only=True)
class PromptState:
    """The state of a prompt that belongs to one process of a group: other processes have other frames, and so on."""

    frame: int = 0
    """The selected frame, from the innermost, 0."""
    lane: int | None = None
    """The selected thread, if it is not the running one."""
    displays: dict[int, str] = field(default_factory=dict)
    """Expressions that are shown wherever it stops."""
    display_number: int = 0
    listed: int = 0
    """The last line that `list` has shown; 0: none since it moved."""
    checkpoint_number: int = 0
    commands: dict[int, list[str]] = field(default_factory=dict)
    """Lines that are done wherever a breakpoint stops it."""
    commanded: int = 0
    """The breakpoint whose commands are being typed; 0: none are."""
    stopped_by: int = 0
    """The breakpoint that stopped it just now; 0: none did, or its commands have been done."""
    shown_function: tuple[str, str] = ("", "")


@dataclass(slots=True)
class View(PromptState):
    """The state of a prompt; the commands change it."""

    session: Session
    """That of the selected process."""
    screen: Surface
    others: InitVar[GroupSession | None] = None
    is_backward: bool = False
    """Whether step, next, finish and continue go backwards."""
    own_code: OwnCode = field(default_factory=OwnCode)
    """Which code is the user's own."""
    steps_in_own_code: bool = False
    """Whether step, next, finish and their twins pass over all other code."""
    trail: list[tuple[int, int | Moment]] = field(default_factory=list)
    """The processes and counts of the lines at which it stopped, for `back` and `fwd`."""
    trail_at: int = -1
    is_over: bool = False
    """Whether the prompt shall end."""
    group: GroupSession = field(init=False)
    """The sessions of the group's processes; of a recording that is in no group, the only one."""
    _left: dict[int, PromptState] = field(default_factory=dict)
    """The state of the processes that were selected before."""

    def __post_init__(self, others: GroupSession | None) -> None:
        self.group = others if others is not None else GroupSession(self.session)

    # ---- processes ----

    @property
    def process(self) -> int:
        """The number of the selected process; 0: the recording is in no group."""
        return self.group.number_of(self.session)

    def select_process(self, number: int) -> bool:
        """Select a process of the group, at its own position; return whether its session was opened for that.

        Raises UsageError, and what opening does.
        """
        is_new = number not in self.group.sessions
        session = self.group.session(number)
        if session is not self.session:
            names = [each.name for each in fields(PromptState)]
            self._left[self.process] = PromptState(**{name: getattr(self, name) for name in names})
            state = self._left.pop(number, None) or PromptState()
            for name in names:
                setattr(self, name, getattr(state, name))
            self.session = session
        return is_new

    @property
    def here(self) -> Here:
        """The current position."""
        return self.session.here

    @property
    def at(self) -> _Frame:
        """The selected frame as a session takes it."""
        return {"frame": self.frame, "lane": self.lane}

    def frames(self) -> Sequence[Frame]:
        """Return the frames of the selected thread, innermost first."""
        return self.session.ask.stack(self.lane)

    def place(self) -> Frame:
        """Return the selected frame. Raises UsageError without Python code."""
        frames = self.frames()
        if not frames:
            raise UsageError("No Python code runs in this thread here.")
        return frames[min(self.frame, len(frames) - 1)]

    def evaluate(self, source: str) -> Evaluation:
        """Run an expression or statements in a throw-away copy, in the selected frame."""
        return self.session.ask.evaluate(source, **self.at)

    # ---- moving ----

    def arrive(self, *, is_step: bool = False, is_kept: bool = True) -> None:
        """Show the new position; `is_kept`: `back` returns to it."""
        self.frame, self.lane, self.listed = frame_to_show(self.session), None, 0
        self.stopped_by = self.here.breakpoint
        if is_kept and not self.here.is_changed:
            self.keep()
        top = self.here.top
        function = (top.file, top.function) if top is not None else ("", "")
        is_near = is_step and function == self.shown_function and self.here.why == "step"
        self.shown_function = function
        self.show_here(around=0 if is_near else AROUND)
        self.show_displays()

    def keep(self) -> None:
        """Keep this place for `back`."""
        place = (self.process, self.here.moment if self.here.moment.point else self.here.count)
        if self.trail_at >= 0 and self.trail[self.trail_at] == place:
            return
        del self.trail[self.trail_at + 1 :]
        self.trail.append(place)
        self.trail_at = len(self.trail) - 1

    def show_here(self, around: int = AROUND) -> None:
        """Print the current position and the source around it."""
        self.screen.line(texts.here_text(self.session, self.here), "bold")
        reason = texts.reason_text(self.session, self.here)
        if reason:
            self.screen.line(reason, "red" if reason.startswith("raises ") else "yellow")
        if self.here.top is None:
            return
        at = self.place()
        if self.frame:
            self.show_frame()
        self.show_source(at.file, at.line - around, at.line + around, at.line)

    def show_frame(self) -> None:
        """Print which frame is selected."""
        at = self.place()
        self.screen.line(f"#{self.frame}  {texts.place_text(self.session, at.file, at.line, at.function)}", "bold")

    def show_displays(self) -> None:
        """Print the expressions that are shown wherever it stops."""
        for number, source in self.displays.items():
            result = self.evaluate(source)
            text = result.value.text if result.value is not None else f"({result.error})"
            self.screen.line(f"{number}: {source} = {text}", "cyan")

    # ---- source ----

    def show_source(self, file: str, first: int, last: int, current: int = 0) -> int:
        """Print lines of a file with their hits; return the last one that there was, 0 for none."""
        lines = self.session.sources.lines(file)
        if not lines:
            if current:
                self.screen.line(f"(the source of {file} is not available)", "dim")
            return 0
        hits = self.session.index.lines_hit(file)
        first, last = max(first, 1), min(last, len(lines))
        numbers = range(first, last + 1)
        rows = [SourceRow(number, lines[number - 1], hits.get(number, 0), number == current) for number in numbers]
        self.screen.source(file, lines, rows)
        return last if rows else 0


class SilentView(View):
    """A view that does not print its position: a front end shows it in another way."""

    def show_here(self, around: int = 0) -> None:
        """Do nothing."""

    def show_displays(self) -> None:
        """Do nothing."""
