"""The debugger's prompt for tests: it executes lines and returns the output."""

from __future__ import annotations

import io
from pathlib import Path

from replaydbg.commands import Prompt
from replaydbg.debugger import Session
from replaydbg.prompt.screen import Screen
from replaydbg.prompt.terminal import Interrupts

TRAVEL = Path(__file__).parents[2] / "fixtures" / "travel"
FAILS = TRAVEL / "ends_by_an_exception.py"


class Typed:
    """A prompt for typed lines."""

    def __init__(self, session: Session, there: str = "") -> None:
        """`there`: the moment that replaces THERE in the lines."""
        self.there = there
        self.out, self.err = io.StringIO(), io.StringIO()
        self.interrupts = Interrupts()
        screen = Screen(self.out, self.err, is_coloured=False, check=self.interrupts.check)
        self.prompt = Prompt(session, screen, self.interrupts)

    @classmethod
    def at(cls, moment: str, session: Session, there: str = "") -> Typed:
        """Return a new prompt at `moment`, without breakpoints."""
        session.seek(moment)
        for point in session.breakpoints:
            session.breakpoints.remove(point.number)
        typed = cls(session, there)
        typed.prompt.open()
        return typed

    def __call__(self, *lines: str) -> str:
        """Type `lines`, and return the output, with error messages at the end."""
        self.out.seek(0)
        self.out.truncate()
        self.err.seek(0)
        self.err.truncate()
        for line in lines:
            self.prompt.do(line.replace("THERE", self.there))
        return self.out.getvalue() + self.err.getvalue()
