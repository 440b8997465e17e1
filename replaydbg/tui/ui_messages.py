"""Messages between the panels, the worker and the app."""

from __future__ import annotations

from textual.message import Message

from replaydbg.tui.view_model import HeapAnswer, LaneSpans, Overview, Reply, TaskTimes, TimelineMark, Track


class Order(Message):
    """A request to execute a command of the prompt."""

    def __init__(self, line: str, *, is_typed: bool = False) -> None:
        """`is_typed`: its output goes to the console, as with lines that were typed."""
        super().__init__()
        self.line = line
        self.is_typed = is_typed


class Scrubbed(Message):
    """The timeline's cursor was moved, and the session must follow; only the last of several counts."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count


class Opened(Message):
    """The recording is open."""

    def __init__(self, overview: Overview, reply: Reply) -> None:
        super().__init__()
        self.overview = overview
        self.reply = reply


class Replied(Message):
    """An order was executed, or failed."""

    def __init__(self, number: int, reply: Reply) -> None:
        """`number` identifies the order."""
        super().__init__()
        self.number = number
        self.reply = reply


class Progressed(Message):
    """A long operation is in progress; an empty `what` ends it."""

    def __init__(self, what: str, done: float = 0.0, seconds: float = 0.0) -> None:
        super().__init__()
        self.what = what
        self.done = done
        self.seconds = seconds


class LanesFound(Message):
    """The times of the lanes were determined."""

    def __init__(self, lanes: tuple[LaneSpans, ...]) -> None:
        super().__init__()
        self.lanes = lanes


class TasksFound(Message):
    """The times of the asyncio tasks were determined."""

    def __init__(self, times: TaskTimes) -> None:
        super().__init__()
        self.times = times


class SnapshotsFound(Message):
    """The positions of snapshots were determined more precisely."""

    def __init__(self, snapshots: tuple[TimelineMark, ...]) -> None:
        super().__init__()
        self.snapshots = snapshots


class TrackFound(Message):
    """A row of the timeline was determined."""

    def __init__(self, track: Track) -> None:
        super().__init__()
        self.track = track


class HeapRead(Message):
    """What is in memory at the present position was read."""

    def __init__(self, contents: HeapAnswer) -> None:
        super().__init__()
        self.contents = contents


class WriterFound(Message):
    """The last write of a value in the heap panel was found."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__()
        self.path = path
        self.text = text


class CannotOpen(Message):
    """The recording could not be opened."""

    def __init__(self, error: str, *, exit_code: int) -> None:
        super().__init__()
        self.error = error
        self.exit_code = exit_code


class Restarted(Message):
    """The session or some of its processes were lost and replaced by others at the same position."""

    def __init__(self, why: str = "") -> None:
        """`why` the whole session was lost; empty: only processes of it."""
        super().__init__()
        self.text = (
            f"The session crashed ({why}) and was restarted at the same position."
            if why
            else "A process of the session was lost and has been replaced."
        )


class Trouble(Message):
    """An internal error of the debugger: that is a bug, but the app continues."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
