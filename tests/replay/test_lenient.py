"""A lenient replay, for edited code: no deviation where nothing was edited, each one reported where something was."""

import contextlib
import json
import os
import shutil
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest

from replaydbg.errors import UsageError
from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from replaydbg.replay import ReplayResult, replay, tested
from replaydbg.replay.lenient import Lenient
from tests.harness.recording import record_file
from tests.harness.replay_cases import Case, cases
from tests.harness.replays import Scene

# Edited code gets memory as it is available. What others write into a map meanwhile comes with its calls.
_NOT_EXACT = ("memory_limit", "map_made_while_another_writes")

# One of this many cases of each area: all of them take minutes.
_SAMPLE = [
    *cases("clocks", "datetime_now", "many_readings"),
    *cases("files")[::6],
    *cases("lanes", "daemon_sleeps_at_exit"),
    *cases("lanes")[::5],
    *cases("signals")[::3],
    *cases("sqlite")[::3],
    *cases("network")[::3],
    *(each for each in cases("processes")[::8] if each.values[0].program.stem not in _NOT_EXACT),
    *cases("tls")[::2],
]


def run(path: Path, *, current_source: bool = False, **options: Any) -> tuple[ReplayResult, str]:
    """Replay leniently; return the result and the program's output."""
    with tempfile.TemporaryFile() as out, open(os.devnull, "w") as null:  # noqa: PTH123
        lenient = Lenient(**options)
        result = replay(path, current_source=current_source, lenient=lenient, stdout=out.fileno(), stderr=null.fileno())
        out.seek(0)
        return result, out.read().decode()


@pytest.mark.parametrize("case", _SAMPLE)
def test_code_that_is_not_edited_takes_no_liberty(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene.make(case.program, args=case.args, stdin=case.stdin, flags=case.flags, env=case.env, how=case.how)
    monkeypatch.setenv("XDG_DATA_HOME", str(scene.base / "data"))  # where the key for its secrets is
    try:
        recorded = scene.record()
        shutil.rmtree(scene.work)

        result, printed = run(scene.recording)

        assert result.liberties == ()
        assert (result.cannot_test, result.liberty_counts) == ("", {})
        assert scene.comparable(printed) == scene.comparable(recorded.stdout)
        assert (result.status if result.status >= 0 else 128 - result.status) == recorded.status
    finally:
        scene.remove()


PROGRAM = """\
import time

def words(path):
    with open(path) as file:
        return file.read().split()

start = time.time()
numbers = [int(word) for word in words("input.txt")]
print("read", len(numbers))
total = sum(100 // number for number in numbers)
print("total", total)
"""


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    program = tmp_path / "shop.py"
    program.write_text(PROGRAM)
    (tmp_path / "input.txt").write_text("1 2 0 5")
    return record_file(program, tmp_path, status=1)


def edit(recording: Path, old: str, new: str) -> None:
    """Edit the recorded program, and delete its input."""
    program = recording.with_suffix(".py")
    text = program.read_text()
    assert old in text
    program.write_text(text.replace(old, new))
    (recording.parent / "input.txt").unlink(missing_ok=True)


def test_outcome_of_a_failure_is_told(failed: Path) -> None:
    result, _ = run(failed)

    assert result.outcome is not None and result.outcome.exception is not None
    place = result.outcome.exception.place
    assert place is not None
    assert (result.outcome.status, result.outcome.exception.type) == (1, "ZeroDivisionError")
    assert (place.file, place.line) == (str(failed.with_suffix(".py")), 10)
    # 3.14 has one text for all divisions.
    assert result.outcome.exception.text in ("integer division or modulo by zero", "division by zero")


def test_a_repair_is_run_on_the_recorded_input(failed: Path) -> None:
    edit(failed, "100 // number for number in numbers", "100 // number for number in numbers if number")

    result, printed = run(failed, current_source=True)

    assert printed == "read 4\ntotal 170\n"
    assert result.outcome is not None and not result.outcome.is_failure
    assert set(result.liberty_counts) <= {"written", "skipped", "unused"}


def test_a_clock_that_is_asked_once_more_stands_still(failed: Path) -> None:
    edit(failed, 'print("read"', 'assert time.time() == time.time() == start\nprint("read"')

    result, _ = run(failed, current_source=True)

    assert result.liberty_counts["repeated"] == 2
    assert result.outcome is not None and result.outcome.exception is not None
    assert result.outcome.exception.type == "ZeroDivisionError"


def test_output_that_is_new_is_written(failed: Path) -> None:
    edit(failed, "start =", "print('begins', flush=True)\nstart =")

    result, printed = run(failed, current_source=True)

    assert printed.startswith("begins\nread 4\n")
    assert result.liberty_counts["written"] == 1
    assert result.liberties[0].file == str(failed.with_suffix(".py"))
    assert result.liberties[0].line == 7


def test_what_the_recording_does_not_have_cannot_be_tested(failed: Path) -> None:
    edit(failed, "numbers = ", "open('other.txt')\nnumbers = ")

    result, _ = run(failed, current_source=True)

    assert result.outcome is None
    assert "other.txt" in result.cannot_test
    assert "not in the recording" in result.cannot_test


def test_sources_of_another_directory_are_run_under_the_recorded_names(failed: Path, tmp_path: Path) -> None:
    new = tmp_path / "elsewhere"
    new.mkdir()
    (new / "shop.py").write_text("print(__file__, __name__)\nanswer = 42\n")

    result, printed = run(failed, sources={str(tmp_path): str(new)}, check="answer == 42")

    assert printed == f"{failed.with_suffix('.py')} __main__\n"
    assert result.check is not None and result.check.verdict == "holds"


@pytest.mark.parametrize(
    ("check", "verdict", "error"),
    [
        ("len(numbers) == 4", "holds", ""),
        ("len(numbers) == 5", "fails", ""),
        ("total", "raised", "NameError: name 'total' is not defined"),
        ("open('x')", "raised", "OSError: [Errno 5] Input/output error"),
    ],
)
def test_an_expression_is_evaluated_after_the_exception(failed: Path, check: str, verdict: str, error: str) -> None:
    result, _ = run(failed, check=check)

    assert result.check is not None
    assert (result.check.verdict, result.check.error) == (verdict, error)
    assert result.outcome is not None and result.outcome.exception is not None


# ---- threads, signals, descriptors ----

# The sleep is a crossing, at which another thread goes on; tests remove it.
WORKERS = """\
import queue, threading, time

jobs, done, lock = queue.Queue(), [], threading.Lock()

def work(name):
    while (job := jobs.get()) is not None:
        time.sleep(0.001)
        with lock:
            done.append((job, time.time()))

threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
for thread in threads:
    thread.start()
for job in range(9):
    jobs.put(job)
for thread in threads:
    jobs.put(None)
for thread in threads:
    thread.join()
assert len(done) == 10
"""


@pytest.fixture
def workers(tmp_path: Path) -> Path:
    program = tmp_path / "workers.py"
    program.write_text(WORKERS)
    return record_file(program, tmp_path, status=1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("== 10", "== 9"),
        ("        time.sleep(0.001)\n", ""),
        ('"abc"', '"abcd"'),
        ('"abc"', '"ab"'),
        ("with lock:", "if True:"),
        ("        time.sleep(0.001)\n", "        for n in range(30000): n = str(n)\n"),
        ("        time.sleep(0.001)\n", "        print(name, flush=True); time.sleep(0.002)\n"),
    ],
)
def test_threads_of_edited_code_go_on(workers: Path, old: str, new: str) -> None:
    edit(workers, old, new)

    result, _ = run(workers, current_source=True, check="sorted(job for job, _ in done) == list(range(9))")

    assert result.cannot_test == ""
    assert result.check is not None and result.check.verdict == "holds"


def test_threads_that_wait_for_each_other_cannot_be_tested(workers: Path) -> None:
    edit(workers, "    jobs.put(None)\n", "    pass\n")

    result, _ = run(workers, current_source=True)

    assert "no thread can continue: MainThread waits for a lock at " in result.cannot_test


# The sleep is what the first alarm interrupts, and what a test shortens.
ALARMS = """\
import signal, time

heard = []
signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
signal.setitimer(signal.ITIMER_REAL, 0.01)
time.sleep(0.2)
signal.setitimer(signal.ITIMER_REAL, 0.05)
turns = 0
while len(heard) < 2:
    turns += 1
print(heard, flush=True)
"""


@pytest.mark.parametrize(
    ("old", "new", "liberty"),
    [
        ("time.sleep(0.2)", "time.sleep(0.1)", "skipped"),
        ("turns += 1", "turns += 2; turns -= 1", "signal"),
        ("while len(heard) < 2:", "for turns in range(1000):", "signal"),
    ],
)
def test_a_handler_runs_although_its_place_has_gone(tmp_path: Path, old: str, new: str, liberty: str) -> None:
    program = tmp_path / "alarms.py"
    program.write_text(ALARMS)
    recording = record_file(program, tmp_path)
    edit(recording, old, new)

    result, _ = run(recording, current_source=True, check="len(heard) == 2")

    assert result.cannot_test == ""
    assert result.check is not None and result.check.verdict == "holds"
    assert liberty in result.liberty_counts


def test_a_file_that_a_function_opens(tmp_path: Path) -> None:
    """Its descriptor exists before the file object has it."""
    program = tmp_path / "opener.py"
    program.write_text(
        "import os, time\ntime.time()\n"
        "with open('a.txt', opener=lambda path, flags: os.open(path, flags)) as file:\n    text = file.read()\n"
    )
    (tmp_path / "a.txt").write_text("A")
    recording = record_file(program, tmp_path)
    edit(recording, "time.time()\n", "")

    result, _ = run(recording, current_source=True, check="text == 'A'")

    assert result.check is not None and result.check.verdict == "holds"


def test_what_was_passed_over_comes_before_what_is_far_ahead(tmp_path: Path) -> None:
    program = tmp_path / "far.py"
    program.write_text(
        "import os\nfound = os.stat('a.txt')\nos.stat('b.txt')\n"
        "sizes = [os.stat(f'{number % 9}.txt').st_size for number in range(500)]\nlater = os.stat('a.txt')\n"
    )
    for name in "ab012345678":
        (tmp_path / f"{name}.txt").write_text(name)
    recording = record_file(program, tmp_path)
    edit(recording, "found = os.stat('a.txt')\nos.stat('b.txt')", "os.stat('b.txt')\nfound = os.stat('a.txt')")

    result, _ = run(recording, current_source=True, check="len(sizes) == 500 and later")

    assert result.check is not None and result.check.verdict == "holds"
    assert result.liberty_counts == {"skipped": 1, "reordered": 1}


FILES = """\
a, b = open("a.txt"), open("b.txt")
texts = a.read(), b.read()
a.close()
c = open("c.txt")
texts += (c.read(),)
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('a, b = open("a.txt"), open("b.txt")', 'b, a = open("b.txt"), open("a.txt")', "('A', 'B', 'C')"),
        ('a, b = open("a.txt"), open("b.txt")\ntexts = a.read(), b.read()\na.close()', "texts = ()", "('C',)"),
        ("b.read()\na.close()\n", "b.read()\na.close()\na = open('a.txt')\n", ""),
        ("a.close()\n", "", ""),
    ],
)
def test_one_number_is_never_two_files(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """The recording gave `a` and `c` one descriptor, one after the other."""
    program = tmp_path / "files.py"
    program.write_text(FILES)
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(name.upper())
    recording = record_file(program, tmp_path)
    edit(recording, old, new)

    result, _ = run(recording, current_source=True, check=f"texts == {expected or None}")

    if expected:
        assert result.check is not None and result.check.verdict == "holds"
    else:
        assert result.cannot_test.startswith("The edited program needs an input that is not in the recording: ")


SERVED = """\
import socket, threading

def serve():
    client, _ = server.accept()
    client.sendall(b"amount 4")
    client.close()

server = socket.create_server(("127.0.0.1", 0))
thread = threading.Thread(target=serve)
thread.start()
with socket.create_connection(server.getsockname()) as client:
    said = client.recv(100)
thread.join()
amount = int(said.split()[1])
assert amount == 5
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    said = ", "    print('connected', flush=True); said = "),
        ("client.sendall", "print('sends', flush=True); client.sendall"),
        ("amount 4", "amount 5"),
        ("thread.join()", "thread.join(timeout=5)"),
    ],
)
def test_what_a_socket_gave_is_given_again(tmp_path: Path, old: str, new: str) -> None:
    program = tmp_path / "served.py"
    program.write_text(SERVED)
    recording = record_file(program, tmp_path, status=1)
    edit(recording, old, new)

    result, _ = run(recording, current_source=True, check="amount == 4")

    assert result.cannot_test == ""
    assert result.check is not None and result.check.verdict == "holds"


def test_a_clock_from_far_on_is_not_taken(tmp_path: Path) -> None:
    """The events between would be skipped: the file is read after the clock was read once more."""
    program = tmp_path / "stamps.py"
    program.write_text(
        "import time\n"
        "def stamp():\n"
        "    return time.time()\n"
        "first = stamp()\n"
        "texts = [open('input.txt').read() for turn in range(20)]\n"
        "last = stamp()\n"
    )
    (tmp_path / "input.txt").write_text("x")
    recording = record_file(program, tmp_path)
    edit(recording, "texts", "second = stamp()\ntexts")

    result, _ = run(recording, current_source=True, check="first == second < last and texts == ['x'] * 20")

    assert result.liberty_counts == {"repeated": 1}
    assert result.check is not None and result.check.verdict == "holds"


def test_who_waits_for_a_clock_that_stands_still_cannot_be_tested(tmp_path: Path) -> None:
    program = tmp_path / "late.py"
    program.write_text("import time\nstart = time.time()\nend = time.time()\n")
    recording = record_file(program, tmp_path)
    edit(recording, "end =", "while time.time() < start + 3600: pass\nend =")

    result, _ = run(recording, current_source=True)

    assert "again and again" in result.cannot_test


def test_code_that_computes_for_ever_cannot_be_tested(tmp_path: Path) -> None:
    program = tmp_path / "endless.py"
    program.write_text("n = 1\n")
    recording = record_file(program, tmp_path)
    edit(recording, "n = 1", "while True: pass")

    result, _ = run(recording, current_source=True, cpu_seconds=1)

    assert (result.outcome, result.cannot_test) == (None, "it exceeded the CPU time limit")


# ---- events after the end ----

DRAWS = "import os\nfirst = os.urandom(8)\nprint(len(first))\n"


def test_events_behind_the_end_answer_what_nothing_else_does(tmp_path: Path) -> None:
    program = tmp_path / "draws.py"
    program.write_text(DRAWS)
    recording = record_file(program, tmp_path)
    with_spare = tmp_path / "spare.rdbg-live"
    with_spare.mkdir()
    with open_recording(recording) as read:
        with contextlib.ExitStack() as stack:
            files = {name: stack.enter_context((with_spare / name).open("wb+")) for name in ("log", "world", "content")}
            read.unpack(files)
        (with_spare / "header.json").write_text(json.dumps(dict(read.header.raw)))
        draw = next(each for each in read.events(gate="posix.urandom") if isinstance(each, Event))
    log = bytearray((with_spare / "log").read_bytes())
    assert isinstance(draw.outcome, bytes)
    # The record of that event: the bytes after the definition of its arguments, (8,).
    start = log.index(b"\x0b\x08\x01\x48") + 4
    event = bytes(log[start : log.index(draw.outcome) + 8])
    (end,) = struct.unpack_from("<Q", log, 16)
    log[end:] = event.replace(draw.outcome, b"12345678")
    struct.pack_into("<Q", log, 16, len(log))
    (with_spare / "log").write_bytes(log)
    edit(recording, "print", "second = os.urandom(8)\nprint")

    unanswered, _ = run(recording, current_source=True)
    result, _ = run(with_spare, current_source=True, check="first != second == b'12345678'")

    assert "urandom" in unanswered.cannot_test
    assert result.liberty_counts == {"spare": 1}
    assert result.check is not None and result.check.verdict == "holds"


def test_a_recording_without_the_part_that_runs_edited_tests_says_so(failed: Path) -> None:
    """As those of older versions, in which the plugin read that part from the machine."""
    test = tested.Tested("test_calc.py::test_half", (("test_calc.py::test_half", 0, 0),), 0, "", None, 0)

    with open_recording(failed) as recording, pytest.raises(UsageError, match=r"older version .*test_half: record"):
        tested.check_plugin(recording, test)
