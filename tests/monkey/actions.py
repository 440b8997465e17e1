"""Random actions of a monkey at a terminal: keys, lines after a colon, pasted text, the mouse, other sizes."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

Size = tuple[int, int]

USUAL: Size = (100, 30)
ESCAPE = b"\x1b"
_MOVES = "nsfcNSFC[]{}gGe"
_OTHERS = "tTJudWvwDHRLIpx/P<>Mbm'y:?%123456hjklo=+-0 "
_SPECIAL = (
    b"\r", b"\t", b"\x7f", b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D", b"\x1b[H", b"\x1b[F", b"\x1b[5~", b"\x1b[6~",
    b"\x1b[3~", b"\x1b[Z", b"\x1b[1;2C", b"\x1b[1;2D", b"\x1bOP", b"\x1b[15~", b"\x1bx", b"\x10", b"\x0c", b"\x15",
)  # fmt: skip
"""Enter, Tab, Backspace, arrows, Home and so on, some with Shift or Alt, F1, F5, the palette, Ctrl-L, Ctrl-U."""

_HELD = (b"n", b"s", b"N", b"S", b"\x1b[B", b"\x1b[C", b"\x1b[D", b"\r", b"]")

_LINES = (
    "n", "s 3", "rn", "up", "down 2", "c", "rc", "seek {share}%", "seek {number}", "seek @end", "seek @t+0.01s",
    "start", "fwd", "p locals()", "x = {number}", "display {word}", "undisplay", "break {number}", "break {word}",
    "clear", "watch {word}", "mark {word}", "marks", "goto @{word}", "back", "p {number} * 2", "why {word}",
    "history {word}", "heap", "diff @start", "diff @start @end", "holders {word}", "resources", "log {number} {word}",
    "exceptions", "events", "hits", "list", "where", "bisect {word} > {number}", "holds {word}", "direction",
    "info threads", "commands 1", "end", "help", "help {word}", "next; step", "growth", "icicle", "heap-diff",
    "no such word {number}", "process 1", "proc 2", "sender", "lambda: 1 / 0", "'[b]{word}[/]'", "\u4f60\u597d {word}",
)  # fmt: skip
_WORDS = (
    "self",
    "total",
    "number",
    "till",
    "till.cents",
    "lock",
    "order",
    "i",
    "x",
    "main",
    "requests",
    "n",
    "__name__",
)


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that the monkey does."""

    data: bytes = b""
    """Sent to the program; empty: the size changes."""
    size: Size = USUAL
    pause: float = 0.0
    """Seconds until the next one."""

    def __str__(self) -> str:
        return repr(self.data)[1:] if self.data else f"<{self.size[0]}x{self.size[1]}>"


class Monkey:
    """Chooses actions; the same seed chooses the same ones."""

    def __init__(self, seed: object) -> None:
        self._draw = random.Random(str(seed))
        self._size = USUAL

    def actions(self) -> Iterator[Action]:
        """Yield actions without end."""
        draw = self._draw
        while True:
            kind = draw.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
            if kind == "size":
                self._size = self._any_size()
                yield Action(size=self._size, pause=self._pause())
            else:
                yield Action(self._DOES[kind](self), pause=self._pause())

    def _pause(self) -> float:
        """Mostly none: several keys arrive together."""
        return self._draw.choice((0.0, 0.0, 0.0, 0.005, 0.02, 0.1))

    def _move(self) -> bytes:
        return self._draw.choice(_MOVES).encode()

    def _key(self) -> bytes:
        return self._draw.choice(_OTHERS).encode()

    def _special(self) -> bytes:
        return self._draw.choice(_SPECIAL)

    def _held(self) -> bytes:
        """A key that is held down."""
        return self._draw.choice(_HELD) * self._draw.randint(3, 40)

    def _line(self) -> bytes:
        draw = self._draw
        text = draw.choice(_LINES).format(
            word=draw.choice(_WORDS), number=draw.choice((0, 1, 7, 20, 120, 10**9)), share=draw.randint(0, 101)
        )
        return b":" + text.encode() + draw.choice((b"\r", b"\r", b"\r", b"\t\r", b""))

    def _paste(self) -> bytes:
        draw = self._draw
        text = "".join(draw.choice(string.printable[:95] + "\n\u00e9\u4f60[]") for _ in range(draw.randint(0, 200)))
        return b"\x1b[200~" + text.encode() + b"\x1b[201~"

    def _mouse(self) -> bytes:
        """Clicks, double clicks, drags and turns of the wheel, also beside the screen."""
        draw = self._draw
        column, line = draw.randint(1, self._size[0] + 2), draw.randint(1, self._size[1] + 2)
        kind = draw.randrange(4)
        if kind == 0:
            return self._event(draw.choice((64, 65, 66, 67)), column, line) * draw.randint(1, 6)
        press, release = self._event(draw.choice((0, 0, 0, 2)), column, line), self._event(0, column, line, "m")
        if kind == 1:
            moves = (self._event(32, draw.randint(1, self._size[0]), line) for _ in range(draw.randint(1, 8)))
            return press + b"".join(moves) + (release if draw.random() < 0.8 else b"")
        if kind == 2:
            return (press + release) * 2
        return press + release

    def _event(self, button: int, column: int, line: int, end: str = "M") -> bytes:
        return f"\x1b[<{button};{column};{line}{end}".encode()

    def _any_size(self) -> Size:
        draw = self._draw
        usual = ((80, 24), (120, 35), (200, 60), USUAL)
        return draw.choice(
            (*usual, (draw.randint(1, 220), draw.randint(1, 70)), (draw.randint(1, 30), draw.randint(1, 12)))
        )

    _DOES: ClassVar[dict[str, Callable[[Monkey], bytes]]] = {
        "move": _move,
        "key": _key,
        "special": _special,
        "held": _held,
        "line": _line,
        "paste": _paste,
        "mouse": _mouse,
    }


_WEIGHTS = {"move": 24, "key": 24, "special": 20, "mouse": 12, "line": 10, "held": 5, "size": 4, "paste": 1}
"""How often each kind of action is chosen."""
