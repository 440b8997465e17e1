"""Commands that move: in both directions, to moments, and back to earlier positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NoReturn

from replaydbg.commands.places import parse_place
from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand
from replaydbg.debugger.session_results import Breakpoint, Here
from replaydbg.errors import Cancelled, NoSuchMoment, UsageError
from replaydbg.render import texts
from replaydbg.render.groups.processes_text import process_heading


def number_of(text: str, *, default: int = 1) -> int:
    """Return the count that follows a command, 1 or more. Raises UsageError."""
    text = text.strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"N must be at least 1 (got {text}).")
    return int(text)


@contextmanager
def _arriving(view: View, *, is_step: bool) -> Iterator[None]:
    """Show the new position after the body, also if it is cancelled."""
    view.keep()
    try:
        yield
    except Cancelled:
        view.arrive()
        raise
    view.arrive(is_step=is_step)


def _act(view: View, name: str) -> Callable[[], Here]:
    """Return the motion; steps are in the selected thread, which is the running one on arrival."""
    is_step = name not in ("go", "reverse_go")
    act: Callable[..., Here] = getattr(view.session, name)
    if is_step and view.steps_in_own_code:
        act = partial(act, own=view.own_code)
    lane = view.lane if is_step else None

    def run() -> Here:
        is_there = lane is None or view.here.lane == lane
        return act() if is_there else act(lane=lane)

    return run


def _motion(
    names: tuple[str, ...], help_: str, act: str, backward: str = "", *, is_step: bool = False
) -> PromptCommand:
    """Return the command that does `act` of the session so often; `backward` when the direction is turned."""

    def run(view: View, rest: str) -> None:
        times = number_of(rest)
        move = _act(view, backward if backward and view.is_backward else act)
        with _arriving(view, is_step=is_step):
            for _ in range(times):
                before = view.here.count
                move()
                view.screen.check()
                if view.here.count == before or view.here.why in ("end", "start"):
                    break

    return PromptCommand(names, "[N]", help_, run, repeats=True, completes="")


# ---- to a line ----


def _until(view: View, rest: str) -> None:
    """Without a place: on in this function until a line behind this one; so a loop is left at its end."""
    if rest.strip():
        _advance(view, rest)
        return
    top = next(iter(view.session.ask.stack(view.lane)), None)
    if top is None:
        raise UsageError("No Python code is running here.")
    step = _act(view, "next")
    with _arriving(view, is_step=True):
        while True:
            step()
            view.screen.check()
            now = view.here.top
            if now is None or view.here.why != "step" or now.started != top.started or now.line > top.line:
                break


def _advance(view: View, rest: str) -> None:
    _run_to(view, rest, is_backward=view.is_backward)


def _reverse_advance(view: View, rest: str) -> None:
    _run_to(view, rest, is_backward=True)


def _run_to(view: View, rest: str, *, is_backward: bool) -> None:
    if not rest.strip():
        raise UsageError("usage: advance FILE:LINE | LINE | FUNCTION")
    file, line, function = parse_place(view, rest)
    view.keep()
    point = view.session.breakpoints.add(Breakpoint(0, file=file, line=line, function=function, temporary=True))
    try:
        if is_backward:
            view.session.reverse_go()
        else:
            view.session.go()
    finally:
        if any(each.number == point.number for each in view.session.breakpoints):
            view.session.breakpoints.remove(point.number)
    view.arrive()


# ---- to a moment ----


def go_to(view: View, moment: str | int) -> None:
    """Go to a moment, and show it."""
    view.keep()
    view.session.seek(moment)
    view.arrive()


def _seek(view: View, rest: str) -> None:
    word = rest.strip()
    if not word:
        raise UsageError("usage: seek MOMENT (120, 120:35, 71%, @exc, @end, @start, @out:17, @t+1.2s or a mark)")
    try:
        go_to(view, word)
    except NoSuchMoment:
        # The @ of a name is optional.
        if not word.isidentifier():
            raise
        go_to(view, f"@{word}")


def _seek_ticks(view: View, rest: str) -> None:
    go_to(view, number_of(rest.replace(",", "")))


def _start(view: View, rest: str) -> None:
    go_to(view, view.session.first_own)


def _end(view: View, rest: str) -> None:
    go_to(view, "@end")


def _restart(view: View, rest: str) -> None:
    name = rest.strip()
    if not name:
        _start(view, "")
    else:
        go_to(view, f"@c{name}" if name.isdecimal() else f"@{name.lstrip('@')}")


def _run(view: View, rest: str) -> None:
    if rest.strip():
        _seek(view, rest)
    else:
        _start(view, "")


# ---- marks, and where one was ----


def _mark(view: View, rest: str) -> None:
    name = rest.strip().lstrip("@")
    if not name:
        raise UsageError("usage: mark NAME")
    moment = view.session.marks.add(name)
    view.screen.line(f"@{name} is {texts.moment_text(moment)}.")


def _checkpoint(view: View, rest: str) -> None:
    if rest.strip():
        _mark(view, rest)
        return
    view.checkpoint_number += 1
    number = view.checkpoint_number
    moment = view.session.marks.add(f"c{number}")
    view.screen.line(f"Checkpoint {number} is {texts.moment_text(moment)}; `restart {number}` comes back to it.")


def marks(view: View, rest: str) -> None:
    """Print the marks."""
    if not view.session.marks.moments:
        view.screen.line("No marks. `mark NAME` adds one.")
    for name, moment in view.session.marks.moments.items():
        share = texts.percent_text(view.session.index.count(moment), view.here.total)
        view.screen.line(f"@{name}  {texts.moment_text(moment)}  {share}")


def _travel_back(view: View, rest: str) -> None:
    _along_the_trail(view, -number_of(rest))


def _travel_forward(view: View, rest: str) -> None:
    _along_the_trail(view, number_of(rest))


def _along_the_trail(view: View, by: int) -> None:
    wanted = view.trail_at + by
    if not 0 <= wanted < len(view.trail):
        raise UsageError("No earlier position." if by < 0 else "No later position.")
    process, place = view.trail[wanted]
    if process != view.process:
        view.select_process(process)
        view.screen.line(process_heading(view.group, process), "bold")
    view.session.seek(place)
    view.trail_at = wanted
    view.arrive(is_kept=False)


def _ugo(view: View, rest: str) -> None:
    word, _, more = rest.strip().partition(" ")
    if word == "undo":
        _travel_back(view, more)
    elif word == "redo":
        _travel_forward(view, more)
    else:
        _seek(view, rest)


def _direction(view: View, rest: str) -> None:
    word = rest.strip()
    if word and not any(each.startswith(word) for each in ("reverse", "backward", "forward")):
        raise UsageError(f"usage: direction [reverse|forward] (got {word!r})")
    view.is_backward = not view.is_backward if not word else word[0] in "rb"
    way = "backwards" if view.is_backward else "forwards"
    view.screen.line(f"step, next, finish and continue now go {way}.")


def set_direction(view: View, rest: str) -> None:
    """Let step, next, finish and continue go `reverse` or `forward`. Raises UsageError."""
    _direction(view, rest)


def _just_my_code(view: View, rest: str) -> None:
    word = rest.strip()
    if word not in ("", "on", "off"):
        raise UsageError(f"usage: just-my-code [on|off] (got {word!r})")
    view.steps_in_own_code = not view.steps_in_own_code if not word else word == "on"
    what = "skip code that is not yours" if view.steps_in_own_code else "stop in all code"
    view.screen.line(f"Steps now {what}.")


def _quit(view: View, rest: str) -> NoReturn:
    view.is_over = True
    raise EOFError


COMMANDS = (
    _motion(
        ("next", "n"),
        "go to the next line of this function, over calls",
        "next",
        "reverse_next",
        is_step=True,
    ),
    _motion(("step", "s"), "go to the next line, into calls", "step", "reverse_step", is_step=True),
    _motion(
        ("finish", "fin", "return", "r"),
        "run to the end of this function: the next line of its caller",
        "finish",
        "reverse_finish",
    ),
    _motion(("continue", "c", "cont"), "run to the next breakpoint, or the end", "go", "reverse_go"),
    _motion(
        ("reverse-next", "rn", "N"),
        "go back to the previous line of this function, over calls",
        "reverse_next",
        is_step=True,
    ),
    _motion(("reverse-step", "rs", "S"), "go back to the previous line, into calls", "reverse_step", is_step=True),
    _motion(("reverse-finish", "rf", "F"), "go back to the line that called this function", "reverse_finish"),
    _motion(("reverse-continue", "rc", "C"), "run back to the previous breakpoint, or the start", "reverse_go"),
    PromptCommand(
        ("until", "unt"),
        "[PLACE]",
        "run to a line after this one (leaves a loop), or to PLACE",
        _until,
        repeats=True,
        completes="places",
    ),
    PromptCommand(("advance",), "PLACE", "run to a line or function", _advance, completes="places"),
    PromptCommand(
        ("reverse-advance", "ra"),
        "PLACE",
        "run back to a line or function",
        _reverse_advance,
        completes="places",
    ),
    PromptCommand(
        ("seek", "goto"), "MOMENT", "go to 120, 120:35, 71%, @exc, @end, @out:17 or a mark", _seek, completes="moments"
    ),
    PromptCommand(("seek-ticks",), "N", "go to the Nth line of the run", _seek_ticks, completes=""),
    PromptCommand(("run",), "[EVENT]", "go to an event (default: the program's first line)", _run, completes="moments"),
    PromptCommand(("start",), "", "go to the program's own first line", _start, completes=""),
    PromptCommand(("end",), "", "go to the program's own last line", _end, completes=""),
    PromptCommand(
        ("restart",), "[NAME]", "go to a mark or checkpoint (default: the start)", _restart, completes="marks"
    ),
    PromptCommand(("mark",), "NAME", "name this moment @NAME", _mark, completes=""),
    PromptCommand(("checkpoint",), "[NAME]", "mark this moment with a number, or with NAME", _checkpoint, completes=""),
    PromptCommand(("marks",), "", "list the marks", marks, completes=""),
    PromptCommand(("back",), "[N]", "go back to the previous position", _travel_back, completes=""),
    PromptCommand(("fwd", "forward"), "[N]", "go to the position before `back`", _travel_forward, completes=""),
    PromptCommand(("ugo",), "undo|redo|MOMENT", "pudb's names for back, fwd and seek", _ugo, completes="moments"),
    PromptCommand(
        ("direction",),
        "[reverse|forward]",
        "change the direction of next, step, finish, continue",
        _direction,
        completes="directions",
    ),
    PromptCommand(
        ("just-my-code", "jmc"),
        "[on|off]",
        "make steps skip code that is not yours (on) or stop everywhere (off); without an argument: toggle",
        _just_my_code,
        completes="",
    ),
    PromptCommand(("quit", "q", "exit"), "", "leave the debugger", _quit, completes=""),
)
