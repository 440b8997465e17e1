"""A console block as commands, lines typed at a prompt, and the output that the page shows after each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TYPED = re.compile(r"^(\(replaydbg(?: \d+)?\)) (.*)$")
_GOES_ON = re.compile(r"(\\|\|\||&&|\||\{)$")


@dataclass(slots=True)
class Step:
    """A command, or a line typed at a prompt, with what the page shows after it."""

    text: str
    """Empty: what is shown belongs to the command of an earlier block."""
    prompt: str = ""
    """The prompt at which the line is typed; empty for a shell's command."""
    shown: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """What the page has for the command."""


def steps_of(text: str) -> list[Step]:
    """Return the steps of a block."""
    found: list[Step] = []
    is_open = False
    for line in text.splitlines():
        typed = _TYPED.match(line)
        if line.startswith("$ "):
            found.append(Step(line[2:], lines=[line]))
        elif is_open and line.startswith("> "):
            found[-1].text += f"\n{line[2:]}"
            found[-1].lines.append(line)
        elif typed is not None:
            found.append(Step(typed[2], prompt=typed[1], lines=[line]))
        else:
            if not found:
                found.append(Step(""))
            found[-1].shown.append(line)
        is_open = bool(found) and not found[-1].shown and not found[-1].prompt and bool(_GOES_ON.search(found[-1].text))
    return found
