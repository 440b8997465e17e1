"""What the recorded program printed, sent as the session comes to it for the first time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Output
from replaydbg.events.show import printable

MOST = 200_000
"""Characters that are sent at once: the last ones."""


class PrintedText(NamedTuple):
    """Text that went to a standard stream."""

    category: str
    """`stdout` or `stderr`."""
    text: str


class OutputFollower:
    """Remembers how far the output of each process was shown: an editor's console cannot take anything back."""

    def __init__(self, *, is_shown: bool = False) -> None:
        """`is_shown`: all of it was, while it was recorded."""
        self._is_shown = is_shown
        self._sent: dict[str, int] = {}

    def new(self, session: Session) -> Iterator[PrintedText]:
        """Yield what was printed before the position of a session and not yet shown, in order."""
        if self._is_shown:
            return
        here = (session.here.count, session.here.moment.point)
        output = session.index.output
        first = self._sent.get(str(session.path), 0)
        last = bisect_left(output, here, key=lambda each: (each.count, each.point))
        if last <= first:
            return
        self._sent[str(session.path)] = last
        left = MOST
        kept: list[PrintedText] = []
        for each in reversed(output[first:last]):
            if left <= 0:
                kept.append(PrintedText("console", "(earlier output is left out; `output all` prints it)\n"))
                break
            text = _text(each)
            kept.append(PrintedText("stderr" if each.stream == 2 else "stdout", text[-left:]))
            left -= len(text)
        yield from reversed(kept)


def _text(output: Output) -> str:
    lines = output.data.decode("utf-8", "replace").split("\n")
    return "\n".join(printable(each.expandtabs()) for each in lines)
