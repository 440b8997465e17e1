"""Lines are counted exactly: as Python itself counts them, from any moment on, whatever the program traces itself."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from replaydbg.errors import ReplaydbgError
from replaydbg.replay import replay, steps
from replaydbg.replay.clock import LineBreakpoint, Moment, Orders
from tests.harness import tool
from tests.harness.replay_cases import FIXTURES, Case, cases
from tests.harness.replays import passed_on

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[1] / "harness"
# The oracle cannot count these: they take its trace function away, end in module teardown, depend on time or depth.
BLIND = (
    "own_settrace",
    "own_setprofile",
    "own_monitoring",
    "pdb_session",
    "profilers",
    "coverage_of_itself",
    "finalizers",
    "garbage_in_cycles",
    "signal_handler",
    "recursion_limit",
)
# Random starts of the clock; `tox -e steps` tries 200.
MOMENTS = int(os.environ.get("TEST_MOMENTS", "40"))
MECHANISM = steps.TRACING if sys.version_info < (3, 12) else steps.MONITORING
Recorder = Callable[..., Path]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """Record a fixture once for all tests of this module: `recorded(name, *args)` returns the recording's path."""
    made: dict[tuple[str, ...], Path] = {}

    def record(name: str, *args: str, stdin: str = "", flags: tuple[str, ...] = ()) -> Path:
        if (name, *args) not in made:
            path = tmp_path_factory.mktemp("steps") / f"{name}.rdbg"
            program = [*flags, str(program_of(name)), *args]
            command = tool.record(sys.executable, path, program)
            env = passed_on() | {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(path.parent)}
            done = subprocess.run(command, input=stdin, text=True, capture_output=True, env=env, check=False)
            assert done.returncode == 0, done.stderr
            made[name, *args] = path
        return made[name, *args]

    return record


def program_of(name: str) -> Path:
    return FIXTURES / "steps" / f"{name}.py"


def hits_in(counted: steps.Steps, file: Path) -> dict[tuple[str, int, int], int]:
    """Passages for each function and line of one file."""
    found: dict[tuple[str, int, int], int] = {}
    for each in counted.hits:
        if each.file == str(file):
            found |= {(each.function, each.first_line, line): count for line, count in each.lines.items()}
    return found


@pytest.mark.parametrize("case", cases("steps"))
def test_program_replays(case: Case) -> None:
    case.check()


@pytest.mark.parametrize(
    "program",
    [path for path in (FIXTURES / "steps").glob("*.py") if path.stem not in BLIND],
    ids=lambda path: path.stem,
)
def test_hits_are_those_that_python_counts(recorded: Recorder, tmp_path: Path, program: Path) -> None:
    if program.stem == "greenlets":
        pytest.importorskip("greenlet")
    out = tmp_path / "oracle.json"
    command = [sys.executable, str(HERE / "step_oracle.py"), str(out), str(program)]

    counted = steps.count(recorded(program.stem), hits=True)

    subprocess.run(command, capture_output=True, check=True)
    expected = {(name, first, line): count for name, first, line, count in json.loads(out.read_text())}
    assert expected == hits_in(counted, program)
    assert (counted.python, counted.mechanism) == (sys.version.split()[0], MECHANISM)


def test_two_counts_are_equal(recorded: Recorder) -> None:
    recording = recorded("crossings_everywhere")

    first, second = steps.count(recording), steps.count(recording, hits=True, activations=True)

    assert (first.total, first.per_event, first.digest) == (second.total, second.per_event, second.digest)
    assert len(first.per_event) > 700
    # Lines after the last event belong to none.
    assert first.total >= sum(first.per_event)


def assert_counts_from_anywhere(recording: Path, moments: int, seed: int) -> None:
    """Started at random events, the clock counts the same as from the start."""
    whole = steps.count(recording)
    last = len(whole.per_event)
    for event in random.Random(seed).sample(range(1, last), min(moments, last - 1)):
        counted = steps.count(recording, start_event=event)

        assert counted.per_event == whole.per_event[event:], f"from event {event}"
        assert counted.total == whole.total - sum(whole.per_event[:event]), f"from event {event}"


@pytest.mark.timeout(300)
def test_counts_from_anywhere(recorded: Recorder) -> None:
    assert_counts_from_anywhere(recorded("crossings_everywhere", flags=("-S",)), MOMENTS, seed=1)


@pytest.mark.parametrize("name", ["own_settrace", "own_setprofile", "own_monitoring", "one_liners", "signal_handler"])
def test_counts_from_anywhere_in_programs_that_trace(recorded: Recorder, name: str) -> None:
    assert_counts_from_anywhere(recorded(name, "on"), MOMENTS // 4, seed=2)


def test_counts_from_anywhere_with_parked_greenlets(recorded: Recorder) -> None:
    pytest.importorskip("greenlet")
    assert_counts_from_anywhere(recorded("greenlets"), MOMENTS // 4, seed=3)


@pytest.mark.parametrize("name", ["own_settrace", "own_setprofile"])
def test_own_tracing_changes_no_count(recorded: Recorder, name: str) -> None:
    functions = ("work", "<lambda>", "toggles", "traced")
    program = program_of(name)

    with_it, without = (hits_in(steps.count(recorded(name, how), hits=True), program) for how in ("on", "off"))

    # The two runs differ only in the lines of `if on`, and in the work that a failing tracer cuts off.
    common = {key: count for key, count in without.items() if key[0] in functions and key in with_it}
    assert common
    differing = {key: (count, with_it[key]) for key, count in common.items() if count != with_it[key]}
    allowed = ("work", "traced") if name == "own_settrace" else ()
    assert not [key for key in differing if key[0] not in allowed], differing


def test_stops_at_exactly_the_line_asked_for(recorded: Recorder) -> None:
    recording = recorded("crossings_everywhere")
    whole = steps.count(recording)
    chance = random.Random(4)
    for count in sorted(chance.sample(range(1, whole.total), 15)):
        moment = whole.moment(count)

        stopped = steps.count(recording, stop_at=moment).stop

        assert stopped is not None
        assert (stopped.moment, stopped.count) == (moment, count)
        again = steps.count(recording, stop_at=moment, hits=True).stop
        assert again is not None
        assert (again.digest, again.stack) == (stopped.digest, stopped.stack)


def test_stops_before_the_first_line(recorded: Recorder) -> None:
    stopped = steps.count(recorded("activations", flags=("-S",)), stop_at=Moment(0, 1)).stop

    assert stopped is not None
    assert stopped.count == 1


def test_an_event_that_is_not_there(recorded: Recorder) -> None:
    with pytest.raises(ReplaydbgError, match="has no event 99999"):
        steps.count(recorded("activations"), start_event=99999)


def test_garbage_is_collected_where_it_was(recorded: Recorder) -> None:
    """The clock moves no automatic collection: the finalizers of cycles run between the same events."""
    result = replay(recorded("garbage_in_cycles"), clock=Orders(hits=True, activations=True))

    assert result.divergence is None
    assert result.drift == 0


def line_of(name: str, text: str) -> int:
    lines = program_of(name).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_breakpoints_count_and_stop(recorded: Recorder) -> None:
    file, recording = str(program_of("one_liners")), recorded("one_liners")
    one, loop = line_of("one_liners", "def one"), line_of("one_liners", "total +=")
    asked = (LineBreakpoint(file, one), LineBreakpoint(file, loop), LineBreakpoint("/nowhere.py", 1))

    counted = steps.count(recording, breakpoints=asked)
    stopped = steps.count(
        recording, breakpoints=(LineBreakpoint(file, one), LineBreakpoint(file, loop, stop_at=7))
    ).stop

    # The definition's own line is passed once more, where the function is created.
    assert [each.count for each in counted.breakpoints] == [61, 60, 0]
    assert stopped is not None and stopped.breakpoint is not None
    assert stopped.breakpoint.line == loop
    assert f"line {loop}, in <module>" in stopped.stack[-1]
    assert counted.breakpoints[1].first < stopped.count < counted.breakpoints[1].last


def test_the_line_before_is_of_the_same_activation(recorded: Recorder) -> None:
    name = "activations"
    file, recording = str(program_of(name)), recorded(name)

    def before(text: str, passage: int) -> tuple[bool, str, int]:
        asked = (LineBreakpoint(file, line_of(name, text), stop_at=passage),)
        stopped = steps.count(recording, breakpoints=asked, activations=True).stop
        assert stopped is not None and stopped.before is not None
        return stopped.before.is_same_activation, stopped.before.function, stopped.before.line

    assert before("a = 1", 1) == (False, "main", line_of(name, "x = m()"))
    # Not the first m, which was at the same depth.
    assert before("a = 1", 2) == (False, "main", line_of(name, "x = m()"))
    assert before("return a", 2) == (True, "m", line_of(name, "a = 1"))
    assert before("negative = ", 2) == (False, "main", line_of(name, "y = sorted"))
    # A generator continues in its original activation, whatever ran since.
    assert before("yield square", 2) == (True, "squares", line_of(name, "square = i"))
    assert before("square = i", 2) == (True, "squares", line_of(name, "for i in range(n)"))
    assert before("z = 0", 1) == (True, "main", line_of(name, "y = sorted"))
    assert before("except ValueError", 1) == (True, "main", line_of(name, "        fails()"))


def test_the_clock_leaves_what_the_program_prints(recorded: Recorder, tmp_path: Path) -> None:
    """A replay under the clock verifies every byte; a program that saw the clock would diverge."""
    for case in ("own_settrace", "own_setprofile", "own_monitoring", "recursion_limit", "finalizers", "profilers"):
        counted = steps.count(recorded(case, "on"), hits=True, activations=True)

        assert counted.total > 0


def test_the_clock_under_pdb_and_coverage(recorded: Recorder) -> None:
    text = program_of("pdb_session").read_text()
    commands = json.loads(text.split("# run: ")[1].splitlines()[0])["stdin"]

    assert steps.count(recorded("pdb_session", stdin=commands)).total > 0
    pytest.importorskip("coverage")
    name = "coverage_of_itself"
    counted = steps.count(recorded(name), hits=True)
    work = {
        line: count for (function, _, line), count in hits_in(counted, program_of(name)).items() if function == "work"
    }
    assert work[line_of(name, "total += i")] == 7
    assert work[line_of(name, "return total")] == 4
