"""The commands that move: in both directions, to moments, and back to where one was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from replaydbg.commands.places import parse_place
from replaydbg.commands.view import View
from replaydbg.commands.words import Command
from replaydbg.debugger.results import Breakpoint, Here
from replaydbg.errors import Cancelled, NoSuchMoment, UsageError
from replaydbg.render import texts


def number_of(text: str, *, otherwise: int = 1) -> int:
    """Return the number from 1 that follows a command; `otherwise` without one. Raises UsageError."""
    text = text.strip()
    if not text:
        return otherwise
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"{text!r} is no number from 1.")
    return int(text)


@contextmanager
def _arriving(view: View, *, is_step: bool) -> Iterator[None]:
    """Show where the session stands after what is done meanwhile, also if that is given up."""
    view.keep()
    try:
        yield
    except Cancelled:
        view.arrive()
        raise
    view.arrive(is_step=is_step)


def _act(view: View, name: str) -> Callable[[], Here]:
    """Steps go in the lane that is looked at; it is the one that runs when it has arrived."""
    act: Callable[..., Here] = getattr(view.session, name)
    lane = None if name in ("go", "reverse_go") else view.lane

    def run() -> Here:
        is_there = lane is None or view.here.lane == lane
        return act() if is_there else act(lane=lane)

    return run


def _motion(names: tuple[str, ...], help_: str, act: str, backward: str = "", *, is_step: bool = False) -> Command:
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

    return Command(names, "[N]", help_, run, repeats=True)


# ---- to a line ----


def _until(view: View, rest: str) -> None:
    """Without a place: on in this function until a line behind this one; so a loop is left at its end."""
    if rest.strip():
        _advance(view, rest)
        return
    top = next(iter(view.session.ask.stack(view.lane)), None)
    if top is None:
        raise UsageError("No Python code runs here.")
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
        raise UsageError("Say where to: advance FILE:LINE, LINE or FUNCTION.")
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
        raise UsageError("Say where to: seek 120, 120:35, 71%, @exc, @end, @start, @out:17, @t+1.2s or a mark.")
    try:
        go_to(view, word)
    except NoSuchMoment:
        # Names are known by their @; whoever leaves it out means the same.
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
        raise UsageError("Say the mark's name: mark NAME.")
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
        view.screen.line("There are no marks; `mark NAME` makes one.")
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
        raise UsageError("There is no earlier place." if by < 0 else "There is no later place.")
    view.session.seek(view.trail[wanted])
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
        raise UsageError(f"A direction is reverse or forward, not {word!r}.")
    view.is_backward = not view.is_backward if not word else word[0] in "rb"
    way = "backwards" if view.is_backward else "forwards"
    view.screen.line(f"step, next, finish and continue go {way} now.")


def set_direction(view: View, rest: str) -> None:
    """Let step, next, finish and continue go `reverse` or `forward`. Raises UsageError."""
    _direction(view, rest)


def _quit(view: View, rest: str) -> NoReturn:
    view.is_over = True
    raise EOFError


COMMANDS = (
    _motion(
        ("next", "n"),
        "to the next line of this function; calls are passed over",
        "next",
        "reverse_next",
        is_step=True,
    ),
    _motion(("step", "s"), "to the next line, also into a call", "step", "reverse_step", is_step=True),
    _motion(
        ("finish", "fin", "return", "r"),
        "out of this function, to the next line of its caller",
        "finish",
        "reverse_finish",
    ),
    _motion(("continue", "c", "cont"), "on to the next breakpoint, or the end", "go", "reverse_go"),
    _motion(
        ("reverse-next", "rn", "N"),
        "to the line of this function before; calls are passed over",
        "reverse_next",
        is_step=True,
    ),
    _motion(("reverse-step", "rs", "S"), "to the line that ran before, also into a call", "reverse_step", is_step=True),
    _motion(
        ("reverse-finish", "rf", "F"), "back to the line of the caller that called this function", "reverse_finish"
    ),
    _motion(("reverse-continue", "rc", "C"), "back to the last breakpoint, or the start", "reverse_go"),
    Command(
        ("until", "unt"),
        "[PLACE]",
        "on until a line behind this one (a loop is left), or to PLACE",
        _until,
        repeats=True,
        completes="places",
    ),
    Command(("advance",), "PLACE", "on to a line or function", _advance, completes="places"),
    Command(
        ("reverse-advance", "ra"),
        "PLACE",
        "back to where a line or function ran last",
        _reverse_advance,
        completes="places",
    ),
    Command(
        ("seek", "goto"), "MOMENT", "to 120, 120:35, 71%, @exc, @end, @out:17 or a mark", _seek, completes="moments"
    ),
    Command(("seek-ticks",), "N", "to the line that is the Nth of the run", _seek_ticks, completes=""),
    Command(("run",), "[EVENT]", "to an event; without one, to the program's start", _run, completes="moments"),
    Command(("start",), "", "to the program's own first line", _start, completes=""),
    Command(("end",), "", "to the program's own last line", _end, completes=""),
    Command(
        ("restart",), "[NAME]", "to a mark or a checkpoint; without one, to the start", _restart, completes="marks"
    ),
    Command(("mark",), "NAME", "name this moment @NAME", _mark, completes=""),
    Command(("checkpoint",), "[NAME]", "name this moment by a number, or by NAME", _checkpoint, completes=""),
    Command(("marks",), "", "list the marks", marks, completes=""),
    Command(("back",), "[N]", "to where you were before", _travel_back, completes=""),
    Command(("fwd", "forward"), "[N]", "to where you were before `back`", _travel_forward, completes=""),
    Command(("ugo",), "undo|redo|MOMENT", "as back, fwd and seek", _ugo, completes="moments"),
    Command(("direction",), "[reverse|forward]", "turn the direction of next, step, finish, continue", _direction),
    Command(("quit", "q", "exit"), "", "end", _quit, completes=""),
)
