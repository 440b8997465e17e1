"""The first difference between two runs, in control flow, in inputs and in values, agrees with a plain trace.

Random programs take their behaviour from numbers of `os.urandom`; a plain run gets the same numbers, and `sys.settrace`
writes down each line with its variables. `TEST_DIFFERENCES` is the number of programs.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replaydbg.commands.first_differences import first_differences
from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from replaydbg.render.first_differences_text import FirstDifferences
from replaydbg.render.json_data.first_differences_json import facts
from tests.harness.recording import record_file
from tests.harness.surroundings import without_steering

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PROGRAMS = int(os.environ.get("TEST_DIFFERENCES", "6"))

HEAD = """\
import os, time

class Box:
    def __init__(self, n):
        self.n = n

def ask():
    return os.urandom(1)[0] % 4

def noise():
    return [object() for _ in range(300)]

"""

TRACER = """\
import json, os, sys, time
out, program, numbers = sys.argv[1:]
given = iter(json.loads(numbers))
os.urandom = lambda n: bytes([next(given)]) * n
steps = []

def plain(value, depth=3):
    if isinstance(value, (int, str, type(None))):
        return value
    if isinstance(value, (list, tuple)) and depth:
        return [type(value).__name__, [plain(each, depth - 1) for each in value]]
    if isinstance(value, dict) and depth:
        return sorted([str(key), plain(each, depth - 1)] for key, each in value.items())
    if type(value).__name__ == "Box":
        return ["Box", plain(getattr(value, "n", None), depth - 1)]
    return type(value).__name__

def trace(frame, event, argument):
    if frame.f_code.co_filename != program:
        return None
    if event == "line":
        known = {name: plain(each) for name, each in frame.f_locals.items() if not name.startswith("__")}
        for name in frame.f_code.co_names:
            if name in frame.f_globals and not name.startswith("__"):
                known.setdefault(name, plain(frame.f_globals[name]))
        # Clock readings are no values that matter here.
        steps.append([frame.f_lineno, frame.f_code.co_name, {k: v for k, v in known.items() if "clock" not in k}])
    return trace

with open(program) as source:
    code = compile(source.read(), program, "exec")
sys.settrace(trace)
exec(code, {"__name__": "__main__"})
sys.settrace(None)
with open(out, "w") as target:
    json.dump(steps, target)
"""


def drawn(chance: random.Random) -> str:
    """Return a program of small statements: some request a number, and some branch."""
    lines, names = [], ["n0"]
    functions = []
    for number in range(3):
        body = [f"def f{number}(a, items):", "    clock = time.perf_counter()", "    kept = []"]
        for at in range(chance.randrange(2, 5)):
            body.append(
                "    "
                + chance.choice(
                    (
                        f"a = a * 3 + {at}",
                        "items.append(a)",
                        "kept.append(Box(a))",
                        "a += ask()",
                        "made = noise()",
                        "clock = time.time() - clock",
                        f"if a % 3 == {at % 3}:\n        a += {at + 7}",
                        "a += sum(range(4))",
                    )
                )
            )
        functions += [*body, "    return a", ""]
    lines += ["n0 = 1", "items = []", "clock0 = time.time()", "box = Box(0)"]
    for at in range(chance.randrange(8, 16)):
        name = chance.choice(names)
        new = f"n{len(names)}"
        line = chance.choice(
            (
                f"{new} = {name} + {at}",
                f"{new} = ask() + {name}",
                f"{new} = f{chance.randrange(3)}({name}, items)",
                f"box.n = {name}\n{new} = box.n",
                f"if {name} % 2:\n    {new} = 5\nelse:\n    {new} = {name}",
                f"{new} = 0\nfor i in range({name} % 5):\n    {new} += i",
                f"made = noise()\n{new} = len(made)",
                f"clock{at} = time.monotonic()\n{new} = {name}",
                f"{new} = ({name}, {at})[0]",
            )
        )
        names.append(new)
        lines.append(line)
    return HEAD + "\n".join([*functions, *lines, "print('end')", ""])


@dataclass(frozen=True)
class Expected:
    """The expected differences by the two plain traces."""

    way: int | None
    """The line after which the control flow differs."""
    values: int | None
    """The line before which different values are seen first."""
    names: frozenset[str]
    """The variables."""


def expected(one: list[Any], two: list[Any]) -> Expected:
    same = next(
        (at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a[:2] != b[:2]), min(len(one), len(two))
    )
    is_other_way = same < max(len(one), len(two))
    at = next((at for at in range(same) if one[at][2] != two[at][2]), None)
    names = set()
    if at is not None:
        left, right = one[at][2], two[at][2]
        names = {name for name in {**left, **right} if left.get(name, "-") != right.get(name, "-")}
    return Expected(
        one[same - 1][0] if is_other_way else None, one[at][0] if at is not None else None, frozenset(names)
    )


def numbers_of(recording: Path) -> list[int]:
    """Return the numbers that the program itself got from `os.urandom`."""
    with open_recording(recording) as opened:
        events = [each for each in opened.events(controls=False) if isinstance(each, Event)]
        own = [each for each in events if str(each.site.file).endswith("drawn.py")]
        return [each.outcome[0] for each in own if each.gate.endswith(".urandom")]


def plain_trace(folder: Path, program: Path, numbers: list[int]) -> list[Any]:
    tracer, out = folder / "tracer.py", folder / "trace.json"
    tracer.write_text(TRACER)
    command = [sys.executable, str(tracer), str(out), str(program), json.dumps(numbers)]
    subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL, env=without_steering(os.environ))
    found: list[Any] = json.loads(out.read_text())
    return found


def record_two(folder: Path, text: str) -> tuple[Path, tuple[Path, Path]]:
    program = folder / "drawn.py"
    program.write_text(text)
    one, two = (record_file(program, folder).rename(folder / f"{name}.rdbg") for name in ("one", "two"))
    return program, (one, two)


@pytest.mark.parametrize("seed", range(1, PROGRAMS + 1))
def test_drawn_programs(seed: int, tmp_path: Path) -> None:
    program, recordings = record_two(tmp_path, drawn(random.Random(seed)))
    numbers = [numbers_of(each) for each in recordings]
    told = expected(*(plain_trace(tmp_path, program, each) for each in numbers))

    found = first_differences(*recordings)

    way = found.way.after[0].place.line if found.way is not None and found.way.after is not None else None
    assert way == told.way
    assert (found.values.at[0].place.line if found.values is not None else None) == told.values
    if found.values is not None:
        assert told.names <= {name for name, _, _ in found.values.names}
    pairs = list(zip(*numbers, strict=False))
    other = next((pair for pair in pairs if pair[0] != pair[1]), None)
    if other is None and len(numbers[0]) == len(numbers[1]):
        assert found.input is None
    elif other is not None:
        assert found.input is not None
        assert found.input.gate.endswith(".urandom")
        assert (found.input.good[0], found.input.bad[0]) == other


def compared(tmp_path: Path, text: str, is_wanted: str) -> FirstDifferences:
    """Record until the outputs `a` and `b` satisfy the expression; compare the recordings, the second as bad."""
    for _ in range(40):
        _, recordings = record_two(tmp_path, text)
        outputs = [numbers_of(each) for each in recordings]
        if eval(is_wanted, {"a": outputs[0], "b": outputs[1]}):
            return first_differences(*recordings)
    raise AssertionError("no two such runs")


def test_equal_runs_differ_in_nothing_that_matters(tmp_path: Path) -> None:
    text = (
        HEAD
        + """\
import threading
begun = time.time()
box, lock, same = Box(1), threading.Lock(), {"k": [1, 2]}
said = repr(box)
lines = []
def work():
    started = time.perf_counter()
    lines.append(Box(2))
    took = time.perf_counter() - started
    text = f"{took:.9f} seconds since {begun}"
threads = [threading.Thread(target=work) for _ in range(2)]
for each in threads: each.start(); each.join()
print("end")
"""
    )
    found = compared(tmp_path, text, "True")

    assert found.way is None
    assert found.input is None
    assert found.values is None
    assert found.clock is not None
    assert found.is_empty


def test_objects_at_other_addresses_are_equal(tmp_path: Path) -> None:
    text = (
        HEAD
        + """\
junk = len([object() for _ in range(ask() * 1000)]) * 0
kept = [object() for _ in range(ask() * 100)]
del kept
box, other = Box(1), [Box([1, Box(2)]), {Box: Box("x")}, {1, "a", (2, 3)}]
said = f"{box} and {other[0]!r}"
print("end")
"""
    )
    found = compared(tmp_path, text, "a != b")

    assert found.input is not None
    assert found.values is None or found.values.names[0][0] in ("_", "kept"), found.values


def test_a_clock_that_decides_is_named(tmp_path: Path) -> None:
    text = (
        HEAD
        + """\
number = time.time_ns() // 1000 % 2
if number:
    way = "odd"
else:
    way = "even"
print("end")
"""
    )
    for _ in range(20):
        _, recordings = record_two(tmp_path, text)
        found = first_differences(*recordings)
        if found.way is not None:
            break
    assert found.way is not None
    assert found.way.after is not None
    assert found.way.after[0].source == "if number:"
    assert found.input is None
    assert found.clock is not None
    assert found.values is None, "with the same clock readings there are none"


def test_the_command_names_the_three(tmp_path: Path) -> None:
    text = (
        HEAD
        + """\
begun = time.time()
first = ask()
if first > 1:
    way = "up"
else:
    way = "down"
print("end")
"""
    )
    while True:
        _, recordings = record_two(tmp_path, text)
        one, two = (numbers_of(each)[0] % 4 for each in recordings)
        if (one > 1) != (two > 1):
            break

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "replaydbg", "diff", *options, "-q", "--first", *map(str, recordings)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    shown = run()
    assert shown.returncode == 1, shown.stderr
    for title in ("First difference in control flow", "First difference in inputs", "First difference in values"):
        assert title in shown.stdout
    told = json.loads(run("--json").stdout)
    del told["schema_version"]
    assert told == facts(first_differences(*recordings))
    assert told["control_flow"]["after"][0]["source"] == "if first > 1:"
    assert "urandom" in told["input"]["input"]
    assert [each["name"] for each in told["values"]["variables"]] == ["first"] or told["values"]["at"][0]["line"] < 16
    same = subprocess.run(
        [sys.executable, "-m", "replaydbg", "diff", "--first", str(recordings[0]), "@end"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert same.returncode == 2
    assert "--first compares two recordings" in same.stderr
