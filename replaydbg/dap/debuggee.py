"""The state of a conversation about an open recording: what was given out, what was set, and the hidden prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from replaydbg.commands import Prompt
from replaydbg.commands.surface import CollectedText, Uninterrupted
from replaydbg.commands.view import SilentView, View
from replaydbg.dap.handles import FrameHandle, Numbers, ThreadHandle, ValueHandle
from replaydbg.dap.output_follower import OutputFollower
from replaydbg.dap.part_pages import PartPages
from replaydbg.dap.source_names import SourceNames
from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint, Frame
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.groups.group_session import GroupSession


@dataclass(frozen=True, slots=True)
class Client:
    """How a client counts."""

    first_line: int = 1
    """The number of the first line of a file."""
    first_column: int = 1


@dataclass(slots=True)
class OpenedRecording:
    """An open recording, and how the client wants it."""

    group: GroupSession
    session: Session
    reopen: Callable[..., Session]
    """Opens a recording again, whose processes were lost."""
    own_code: OwnCode = field(default_factory=OwnCode)
    steps_in_own_code: bool = False
    mappings: tuple[tuple[str, str], ...] = ()
    is_output_shown: bool = False
    """Whether the client has seen what the program printed."""

    def close(self) -> None:
        """End all its processes."""
        self.group.close()


@dataclass(frozen=True, slots=True)
class DataPoint:
    """A value that a client may set a data breakpoint on."""

    point: Breakpoint
    process: int
    number: int = 0
    """The breakpoint on it; 0: none was set."""


class Debuggee:
    """An open recording, the prompt that nobody sees, and what the client was given. For one thread."""

    def __init__(
        self,
        opened: OpenedRecording,
        client: Client,
        emit: Callable[[str, dict[str, Any]], None],
        check: Callable[[], None],
    ) -> None:
        """`emit` sends an event; `check` raises Cancelled if the running request is to end."""
        self.client, self.emit, self.check = client, emit, check
        self.console = CollectedText(check)
        self._reopen = opened.reopen
        view = SilentView(
            opened.session,
            self.console,
            opened.group,
            own_code=opened.own_code,
            steps_in_own_code=opened.steps_in_own_code,
        )
        self.prompt = Prompt(opened.session, self.console, Uninterrupted(), view=view)
        self.sources = SourceNames(opened.mappings)
        self.threads: Numbers[ThreadHandle] = Numbers("threadId")
        self.frames: Numbers[FrameHandle] = Numbers("frameId")
        self.values: Numbers[ValueHandle] = Numbers("variablesReference")
        self.pages = PartPages()
        """The parts of values that are known at this stop."""
        self.targets: Numbers[tuple[int, int]] = Numbers("targetId")
        """Positions to go to: the process, and the count of lines."""
        self.points: dict[str, list[int]] = {}
        """The numbers of the client's breakpoints, by the request and the file that set them."""
        self.logged: dict[str, set[tuple[str, ...]]] = {}
        """The log points whose lines were printed, by file."""
        self.data_points: dict[str, DataPoint] = {}
        self.output = OutputFollower(is_shown=opened.is_output_shown)
        self._console_frame = 0

    @property
    def view(self) -> View:
        """The prompt's state."""
        return self.prompt.view

    @property
    def session(self) -> Session:
        """The session of the selected process."""
        return self.view.session

    @property
    def position(self) -> tuple[object, ...]:
        """What a stop is about: another value, and the session has moved."""
        here = self.view.here
        return self.view.process, here.count, here.moment.point, here.is_changed

    @property
    def reason(self) -> str:
        """The reason why the session is where it is."""
        return self.view.here.why

    def close(self) -> None:
        """End all processes."""
        self.view.group.close()

    def forget_stop(self) -> None:
        """Forget what was given out: it was of an earlier position."""
        self.frames.clear()
        self.values.clear()
        self.pages.clear()
        self.targets.clear()
        self._console_frame = 0

    def reopen(self) -> None:
        """Open the recording again, whose processes were lost; position, marks and breakpoints stay."""
        lost, view = self.session, self.view
        lost.close()
        session = self._reopen(lost.path)
        session.take_over(lost)
        view.group.replace(session)
        view.session, view.frame, view.lane = session, 0, None
        self.sources.take_over(session)
        session.seek(min(lost.here.count, session.index.total))

    def print_in_console(self, text: str, **place: Any) -> None:
        """Print a text in the client's console; `place`: the source and line that it belongs to."""
        lines = "\n".join(printable(each) for each in text.split("\n"))
        self.emit("output", {"category": "console", "output": f"{lines}\n", **place})

    # ---- what a client names ----

    def session_of(self, process: int) -> Session:
        """Return the session of a process; it is opened if it was not."""
        return self.session if process == self.view.process else self.view.group.session(process)

    def frame_at(self, number: int) -> FrameHandle:
        """Return the frame with a number; 0: the innermost one here. Raises UsageError."""
        if not number:
            return FrameHandle(self.view.process, self.view.here.lane, self.view.frame)
        return self.frames.at(number)

    def live_frame_at(self, number: int) -> FrameHandle:
        """Return a frame in which expressions can be evaluated. Raises UsageError."""
        found = self.frame_at(number)
        if found.frame < 0:
            raise UsageError("This task waits: the values in its frames cannot be shown.")
        return found

    def python_frame(self, handle: FrameHandle) -> Frame:
        """Return the frame of a handle. Raises UsageError if no Python code runs there."""
        frames = self.session_of(handle.process).ask.stack(self.lane_asked(handle.process, handle.lane))
        if not 0 <= handle.frame < len(frames):
            raise UsageError("No Python code runs in this thread here.")
        return frames[handle.frame]

    def lane_asked(self, process: int, lane: int) -> int | None:
        """Return a thread as a session takes it: None for the one that runs."""
        return None if lane == self.session_of(process).here.lane else lane

    def select(self, handle: FrameHandle) -> None:
        """Select the process, the thread and the frame at the hidden prompt."""
        if handle.process != self.view.process:
            self.view.select_process(handle.process)
        self.view.lane = self.lane_asked(handle.process, handle.lane)
        self.view.frame = max(handle.frame, 0)

    def select_for_console(self, number: int) -> None:
        """Select the frame in which the editor's console is, unless the console's own words have selected another."""
        if number and number != self._console_frame:
            self.select(self.frame_at(number))
            self._console_frame = number

    def line_for_client(self, line: int) -> int:
        """Return a line as the client counts; lines of a recording count from 1."""
        return line - 1 + self.client.first_line

    def line_of_client(self, line: int) -> int:
        """Return a line of a file, counted from 1, that a client has named."""
        return line - self.client.first_line + 1
