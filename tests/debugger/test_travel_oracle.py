"""Random walks through recordings agree, place by place, with a plain trace of the same program.

The trace is made without the tool (tests/debugger/travel_tracer.py). Where each command leads is computed from it by
the simplest definition (tests/harness/travels.py). `tox -e travel` takes 1,000 walks, and 250 with one checkpoint.
"""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint, Here
from replaydbg.debugger.source.own_code import OwnCode
from tests.harness.recording import record_file
from tests.harness.travels import Line, Stop, Trace

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TRACER = Path(__file__).with_name("travel_tracer.py")
FIXTURES = Path(__file__).parents[2] / "fixtures" / "travel" / "walked"
PROGRAMS = sorted(path.stem for path in FIXTURES.glob("*.py"))
# They are traced during the recording: their threads interleave differently each time.
THREADED = ("threads_queue", "threads_computing")
WALKS = int(os.environ.get("TEST_WALKS", "15"))
STEPS = 20
OWN = [(), ("*/lib/python3.*",), ("!*/walked/*",), ("!*", "*/walked/*"), ("*.py", "!*/lib/*")]
"""Patterns of files that are the user's own code, or not."""
COMMANDS = ("step", "next", "finish", "reverse_step", "reverse_next", "reverse_finish", "go", "reverse_go", "seek")


@dataclass(frozen=True, slots=True)
class Travelled:
    """A session, the trace of its program, and where the trace begins in it."""

    session: Session
    trace: Trace
    first: int
    """The count of lines at the trace's first line."""
    file: str
    thinned: int
    """One of this many walks is made."""

    @property
    def at(self) -> int | None:
        """The session's index in the trace; None: outside."""
        place = self.session.here.count - self.first
        return place if 0 <= place < len(self.trace.lines) else None

    def seek(self, at: int) -> Here:
        return self.session.seek(self.first + at)


def recorded(name: str, folder: Path) -> tuple[Path, Trace]:
    """Return a recording of a program, and the trace of the same lines."""
    program, out = FIXTURES / f"{name}.py", folder / f"{name}.json"
    if name in THREADED:
        recording = record_file(TRACER, folder, str(out), str(program), "recorded", timeout=120)
    else:
        recording = record_file(program, folder)
        command = [sys.executable, str(TRACER), str(out), str(program), "alone"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return recording, Trace(out)


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Trace]:
    name = request.param
    if name.startswith("greenlets"):
        pytest.importorskip("greenlet")
    return name, *recorded(name, tmp_path_factory.mktemp("travel"))


@pytest.fixture(scope="module", params=[0.001, 1000.0], ids=["checkpoints", "one_checkpoint"])
def travelled(request: pytest.FixtureRequest, program: tuple[str, Path, Trace]) -> Iterator[Travelled]:
    name, recording, trace = program
    file = str(FIXTURES / f"{name}.py")
    with Session(recording, spacing=request.param) as session:
        session.seek("@start")
        point = session.breakpoints.add(Breakpoint(0, file=file, line=trace.lines[0].number))
        here = session.go()
        session.breakpoints.remove(point.number)
        yield Travelled(session, trace, here.count, file, 1 if request.param < 1 else 4)


# ---- comparisons ----


def shown(line: Line) -> tuple[int, str, int, str]:
    return line.lane, line.file, line.number, line.function


def assert_here(travelled: Travelled, at: int, how: str) -> None:
    """Assert that the session is at that place of the trace, and sees the variables that the tracer saw."""
    session, line = travelled.session, travelled.trace.lines[at]
    top = session.here.top
    assert top is not None, how
    stands = session.here.lane, top.file, top.line, top.function
    assert (session.here.count - travelled.first, stands) == (at, shown(line)), how
    seen = {each.name: each.text for each in session.ask.variables()}
    assert {name: seen.get(name) for name in line.variables} == line.variables, how


def assert_moved(travelled: Travelled, at: int, expected: int | None, how: str) -> bool:
    """Return whether the walk can continue here: it is still in the trace."""
    if expected is not None:
        assert_here(travelled, expected, how)
        return True
    now = travelled.at
    if now is not None and now != at and travelled.session.here.why != "end":
        # The lane has ended, and another one runs.
        assert travelled.trace.lines[now].lane != travelled.trace.lines[at].lane, how
    return False


# ---- walks ----


def random_stop(travelled: Travelled, chance: random.Random) -> Stop:
    trace = travelled.trace
    line = chance.choice([each for each in trace.lines if each.file == travelled.file])
    kind = chance.choice(("line", "line", "function", "exception", "condition"))
    if kind == "function":
        return Stop(function=chance.choice((line.function, line.function.rpartition(".")[2])))
    if kind == "exception":
        return Stop(exception=chance.choice(["*", *(name for _, name in trace.raised)]))
    if kind == "condition":
        same = [each for each in trace.lines if (each.file, each.number) == (line.file, line.number)]
        for name in line.variables:
            if all(each.variables.get(name, "x").isdecimal() for each in same):
                value = int(chance.choice(same).variables[name])
                return Stop(line.file, line.number, variable=name, value=value)
    return Stop(line.file, line.number)


def breakpoint_of(stop: Stop) -> Breakpoint:
    condition = f"{stop.variable} > {stop.value}" if stop.variable else ""
    return Breakpoint(
        0, file=stop.file, line=stop.line, function=stop.function, exception=stop.exception, condition=condition
    )


def go(travelled: Travelled, at: int, command: str, stops: list[Stop]) -> int | None:
    session = travelled.session
    points = [session.breakpoints.add(breakpoint_of(each)) for each in stops]
    try:
        getattr(session, command)()
    finally:
        for each in points:
            session.breakpoints.remove(each.number)
    found: int | None = getattr(travelled.trace, command)(at, stops)
    return found


def walk(travelled: Travelled, chance: random.Random, steps: int = STEPS) -> None:
    """A random walk: each of its places agrees with the trace."""
    session, trace = travelled.session, travelled.trace
    at = chance.randrange(len(trace.lines))
    travelled.seek(at)
    assert_here(travelled, at, f"seek {at}")
    for _ in range(steps):
        command = chance.choice(COMMANDS)
        how = f"{command} from {at}: {shown(trace.lines[at])}"
        if command == "seek":
            expected: int | None = chance.randrange(len(trace.lines))
            moment = session.index.moment(travelled.first + (expected or 0))
            session.seek(chance.choice((moment, f"{moment.event}:{moment.step}", travelled.first + (expected or 0))))
        elif command in ("go", "reverse_go"):
            stops = [random_stop(travelled, chance) for _ in range(chance.choice((1, 1, 2)))]
            expected = go(travelled, at, command, stops)
            how += f" with {stops}"
        elif chance.random() < 0.4:
            own = OwnCode(chance.choice(OWN))
            getattr(session, command)(own=own)
            expected = trace.own(command, at, partial(own.is_own, is_command=False))
            how += f" in own code, {own.patterns}"
        else:
            getattr(session, command)()
            expected = getattr(trace, command)(at)
        if assert_moved(travelled, at, expected, how):
            at = expected if expected is not None else at
        else:
            at = chance.randrange(len(trace.lines))
            travelled.seek(at)


def walks_of(name: str) -> int:
    """Return the number of walks through this program."""
    place = PROGRAMS.index(name)
    return (place + 1) * WALKS // len(PROGRAMS) - place * WALKS // len(PROGRAMS)


def test_walks_agree_with_the_trace(travelled: Travelled) -> None:
    name = Path(travelled.file).stem
    for number in range(max(walks_of(name) // travelled.thinned, 1)):
        walk(travelled, random.Random(f"{name} {number}"))


def test_reverse_commands_are_the_inverse_of_their_twins(travelled: Travelled) -> None:
    session, trace = travelled.session, travelled.trace
    chance = random.Random(f"inverse {travelled.file}")
    for _ in range(max(WALKS // 10 // travelled.thinned, 3)):
        at = chance.randrange(len(trace.lines))
        for command in ("step", "next"):
            travelled.seek(at)
            getattr(session, command)()
            then = travelled.at
            if then in (None, at) or trace.lines[then].lane != trace.lines[at].lane:
                continue
            if command == "step" or trace.stays(at, then):
                getattr(session, f"reverse_{command}")()
                assert travelled.at == at, f"{command} from {at} to {then}"
        stop = Stop(trace.lines[at].file, trace.lines[at].number)
        travelled.seek(at)
        if go(travelled, at, "go", [stop]) is not None:
            go(travelled, session.here.count - travelled.first, "reverse_go", [stop])
            assert travelled.at == at, f"go from {at}: {stop}"


def test_the_trace_is_of_the_whole_program(travelled: Travelled) -> None:
    """Every place of a short program, one after another."""
    if len(travelled.trace.lines) > 500:
        pytest.skip("walks go through the longer ones")
    travelled.seek(0)
    for at in range(len(travelled.trace.lines)):
        top = travelled.session.here.top
        assert top is not None
        assert shown(travelled.trace.lines[at]) == (travelled.session.here.lane, top.file, top.line, top.function)
        travelled.session.seek(min(travelled.session.here.count + 1, travelled.session.index.total))
