"""What the panels, the worker and the program say to each other."""

from __future__ import annotations

from dataclasses import replace

from textual.message import Message

from replaydbg.tui.scene import LaneSpans, Mark, Overview, Reply, Track


class Order(Message):
    """Somebody wants a line done that the prompt would take."""

    def __init__(self, line: str, *, is_typed: bool = False) -> None:
        """`is_typed`: what it says goes to the console, as with lines that were typed."""
        super().__init__()
        self.line = line
        self.is_typed = is_typed


class Scrubbed(Message):
    """The timeline's cursor was moved: the session shall follow; only the last wish counts."""

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
    """An order was done, or could not be."""

    def __init__(self, number: int, reply: Reply) -> None:
        """`number` is the one that the order was given."""
        super().__init__()
        self.number = number
        self.reply = reply


class Progressed(Message):
    """Something takes long; with `what` empty it does no longer."""

    def __init__(self, what: str, done: float = 0.0, seconds: float = 0.0) -> None:
        super().__init__()
        self.what = what
        self.done = done
        self.seconds = seconds


class LanesFound(Message):
    """It is known which lane ran when."""

    def __init__(self, lanes: tuple[LaneSpans, ...]) -> None:
        super().__init__()
        self.lanes = lanes


class MarksFound(Message):
    """It is known better where snapshots were taken, or which exceptions are the program's own."""

    def __init__(
        self, *, snapshots: tuple[Mark, ...] | None = None, exceptions: tuple[Mark, ...] | None = None
    ) -> None:
        """What is None is as it was."""
        super().__init__()
        self._snapshots, self._exceptions = snapshots, exceptions

    def added_to(self, overview: Overview) -> Overview:
        """Return what is shown of the run, with what was found."""
        return replace(
            overview,
            snapshots=overview.snapshots if self._snapshots is None else self._snapshots,
            exceptions=overview.exceptions if self._exceptions is None else self._exceptions,
        )


class TrackFound(Message):
    """A row of the timeline is known."""

    def __init__(self, track: Track) -> None:
        super().__init__()
        self.track = track


class WriterFound(Message):
    """It is known where a value that the heap panel shows was written last."""

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
    """The session was lost, or processes of it, and others stand where they stood."""

    def __init__(self, why: str = "") -> None:
        """`why` the whole session was lost; empty: it was not."""
        super().__init__()
        self.text = (
            f"The session crashed ({why}) and was restarted at the same position."
            if why
            else "A process of the session was lost and has been replaced."
        )


class Trouble(Message):
    """Something of the debugger itself failed: that is a bug, and it goes on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
