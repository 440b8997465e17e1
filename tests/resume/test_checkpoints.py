"""`replaydbg.checkpoint` bounds the log; `key` and `quiesce` are the same in replays and resumptions."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import replaydbg
from replaydbg.log.reader import open_recording
from replaydbg.resume.launcher import plan_resume
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.resumes.rounds import one_round

pytestmark = pytest.mark.slow

_TIMEOUT = 60.0
_COUNTS = """import os, sys, replaydbg
number = starts = 0
def load(saved):
    global number, starts
    number, starts = map(int, saved.split())
    starts += 1
def save():
    return b"%d %d" % (number, starts)
with open("out", "ab", buffering=0) as file:
    while number < 300:
        replaydbg.checkpoint(load, save, {limits})
        file.write(b"%d\\n" % number)
        number += 1
        {each}
print("done", number, starts > 0)
"""
_NUMBERS = "".join(f"{number}\n" for number in range(300))


def replaydbg_run(folder: Path, *words: str) -> Finished:
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}
    return run([sys.executable, "-m", "replaydbg", *words], cwd=folder, env=env, timeout=_TIMEOUT)


def record(folder: Path, text: str, *options: str) -> Finished:
    (folder / "program.py").write_text(text)
    return replaydbg_run(folder, "record", *options, "-o", "one.rdbg", "program.py")


def counting(*, limits: str = "every_events=150", each: str = "") -> str:
    return _COUNTS.format(limits=limits, each=each)


def notes(path: Path) -> list[str]:
    with open_recording(path) as recording:
        return [note.text for note in recording.end.notes] if recording.end is not None else []


# With children, the one process is a group until it is sealed.
@pytest.mark.parametrize("children", ["none", "python"])
def test_each_log_begins_at_a_checkpoint(tmp_path: Path, children: str) -> None:
    recorded = record(tmp_path, counting(), f"--children={children}")

    assert (recorded.status, recorded.stdout) == (0, b"done 300 True\n"), recorded
    assert (tmp_path / "out").read_text() == _NUMBERS
    replayed = replaydbg_run(tmp_path, "replay", "one.rdbg")
    assert (replayed.status, replayed.stdout) == (0, b"done 300 True\n")
    with open_recording(tmp_path / "one.rdbg") as recording:
        continued = recording.header.raw["continued"]
        assert recording.end is not None and recording.end.events < 200
    assert continued["number"] >= 2 and continued["events"] >= 300
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.rdbg", "out", "program.py"]
    assert b"the log begins at checkpoint" in replaydbg_run(tmp_path, "info", "one.rdbg").stdout


def test_by_the_size_of_the_log_and_durable(tmp_path: Path) -> None:
    # A log begins with some 8,000 bytes, and has 7 more for each number.
    program = counting(limits="every_bytes=12_000").replace("300", "1500")

    recorded = record(tmp_path, program, "--durable")

    assert (recorded.status, recorded.stdout) == (0, b"done 1500 True\n"), recorded
    assert replaydbg_run(tmp_path, "replay", "one.rdbg").stdout == b"done 1500 True\n"
    assert replaydbg_run(tmp_path, "verify", "one.rdbg").status == 0


def test_without_a_recorder_nothing_happens(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(counting(limits="every_events=1"))

    plain = run([sys.executable, "program.py"], cwd=tmp_path, env=dict(os.environ), timeout=_TIMEOUT)

    assert plain.stdout == b"done 300 False\n"


def test_a_program_that_was_killed_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    killed = "if number == 290: os.kill(os.getpid(), 9)"
    record(tmp_path, counting(each=killed))

    plan = plan_resume(tmp_path / "one.rdbg")
    text = replaydbg_run(tmp_path, "resume", "one.rdbg", "--plan").stdout
    facts = json.loads(replaydbg_run(tmp_path, "resume", "one.rdbg", "--plan", "--json").stdout)
    resumed = replaydbg_run(tmp_path, "resume", "one.rdbg", "--in-flight=skip", "-o", "two.rdbg")

    assert 0 < plan.recovery.events < 200 and plan.recovery.log_bytes > 0
    assert facts["recovery"]["events"] == plan.recovery.events and facts["recovery"]["seconds"] > 0
    assert b" events" in text and b"; log size " in text
    assert (resumed.status, resumed.stdout) == (0, b"done 300 True\n"), resumed
    assert (tmp_path / "out").read_text() == _NUMBERS
    assert replaydbg_run(tmp_path, "replay", "two.rdbg").stdout == b"done 300 True\n"


# Most of the run is between saving and the first event of the new log.
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment(tmp_path: Path, seed: int) -> None:
    assert one_round(seed, "checkpoints", tmp_path, kills=2).events > 0


def test_one_of_several_processes_goes_on_as_it_is(tmp_path: Path) -> None:
    forks = "if number == 1 and os.fork() == 0: os._exit(0)"
    recorded = record(tmp_path, counting(each=forks), "--children=fork")

    assert (recorded.status, recorded.stdout) == (0, b"done 300 False\n"), recorded
    assert (tmp_path / "out").read_text() == _NUMBERS
    assert "it is one of several processes that are recorded together" in str(notes(tmp_path / "one.rdbgs" / "1.rdbg"))


_WRONG = """import replaydbg
def load(saved): pass
try:
    replaydbg.checkpoint(load, lambda: {saved}, every_events={events})
except (TypeError, ValueError) as error:
    print(type(error).__name__, error)
"""


def test_a_state_that_the_new_log_cannot_hold(tmp_path: Path) -> None:
    text = "import replaydbg\nreplaydbg.checkpoint(print, lambda: bytes(1 << 20), every_events=1)\nprint('goes on')\n"

    recorded = record(tmp_path, text, "--max-size=1M")

    assert recorded.stdout == b"goes on\n"
    assert "does not fit" in "".join(notes(tmp_path / "one.rdbg"))


def test_what_is_not_a_recorders_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "one.rdbg-next").mkdir()
    (tmp_path / "one.rdbg-next" / "mine").write_text("kept")

    recorded = record(tmp_path, counting(), "--children=none")

    assert recorded.stdout == b"done 300 False\n"
    assert (tmp_path / "one.rdbg-next" / "mine").read_text() == "kept"
    assert "is not a recorder's" in "".join(notes(tmp_path / "one.rdbg"))


def test_wrong_arguments(tmp_path: Path) -> None:
    text = record(tmp_path, _WRONG.format(saved="'text'", events=1)).stdout
    negative = record(tmp_path, _WRONG.format(saved="b''", events=-1)).stdout

    assert text == b"TypeError save() must return bytes (got str)\n"
    assert negative == b"ValueError every_events must be an integer of at least 0 (got -1)\n"


_QUIESCES = """import replaydbg
lines = []
@replaydbg.quiesce
def first():
    lines.append("first")
    return lambda: lines.append("undo first")
@replaydbg.quiesce
def second():
    lines.append("second")
    {fails}
    return lambda: lines.append("undo second")
replaydbg.snapshot("now", quiesce=True)
replaydbg.checkpoint(lambda saved: print("loaded", saved), lambda: str(lines).encode(), every_events=1)
print(lines)
"""


def snapshots(path: Path) -> list[tuple[str, str]]:
    with open_recording(path) as recording:
        end = json.loads(recording.section("end"))
        return [(each["name"], each["reason"]) for each in end["snapshots"]["listed"]]


def test_callbacks_run_before_and_are_undone_in_the_opposite_order(tmp_path: Path) -> None:
    recorded = record(tmp_path, _QUIESCES.format(fails=""))

    before = "['first', 'second', 'undo second', 'undo first', 'first', 'second']"
    assert recorded.stdout.decode().splitlines()[0] == f'loaded b"{before}"'
    assert replaydbg_run(tmp_path, "replay", "one.rdbg").stdout == recorded.stdout
    assert snapshots(tmp_path / "one.rdbg") == [("now", "consistent")]
    assert not notes(tmp_path / "one.rdbg")


def test_a_callback_that_fails_is_reported(tmp_path: Path) -> None:
    recorded = record(tmp_path, _QUIESCES.format(fails="open('/nowhere')"))

    assert recorded.stdout == b"['first', 'second', 'undo first', 'first', 'second', 'undo first']\n"
    assert replaydbg_run(tmp_path, "replay", "one.rdbg").stdout == recorded.stdout
    assert snapshots(tmp_path / "one.rdbg") == [("now", "inconsistent")]
    reason = "the callback 'second' raised FileNotFoundError: [Errno 2] No such file or directory: '/nowhere'"
    assert notes(tmp_path / "one.rdbg") == [
        f"the snapshot 'now' is not consistent: {reason}",
        f"no checkpoint was taken: {reason}",
    ]


class _Once(BaseHTTPRequestHandler):
    """Counts what it was sent, and drops requests whose key it has seen."""

    accepted: dict[str, bytes]
    attempts: list[str]

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["Idempotency-Key"]
        self.attempts.append(key)
        self.accepted.setdefault(key, content)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def served() -> Iterator[tuple[type[_Once], int]]:
    class Handler(_Once):
        pass

    Handler.accepted, Handler.attempts = {}, []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Handler, server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


# The request has arrived when its answer is there to be read; the program dies before that is in the log.
_SENDS = """import http.client, os, replaydbg, signal
for number in range(3):
    key = replaydbg.key()
    for attempt in range(3):
        connection = http.client.HTTPConnection("127.0.0.1", {port})
        try:
            connection.request("POST", "/", str(number), {{"Idempotency-Key": key}})
            answer = connection.getresponse()
            if number == 1 and not os.path.exists("died"):
                os.close(os.open("died", os.O_CREAT))
                os.kill(os.getpid(), signal.SIGKILL)
            answer.read()
            break
        except OSError:
            continue
    print(key)
"""


def test_a_repeated_request_has_its_key(tmp_path: Path) -> None:
    with served() as (handler, port):
        killed = record(tmp_path, _SENDS.format(port=port), "--children=none")
        with open_recording(tmp_path / "one.rdbg") as recording:
            # Before the answer to the second request: what was sent is to be sent once more.
            gates = [(each.number, each.gate) for each in recording.events(controls=False)]  # type: ignore[union-attr]
        sends = [number for number, gate in gates if gate == "_socket.socket.sendall"]
        at = ("--at", str(sends[-1]))
        resumed = replaydbg_run(tmp_path, "resume", "one.rdbg", *at, "--in-flight=repeat", "-o", "two.rdbg")
        replayed = replaydbg_run(tmp_path, "replay", "two.rdbg")

    assert killed.status in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert resumed.status == 0, resumed
    assert list(handler.accepted.values()) == [b"0", b"1", b"2"]
    assert len(handler.attempts) > 3 and len(set(handler.attempts)) == 3
    assert replayed.stdout.split() == [key.encode() for key in handler.accepted]


def test_keys_differ_between_calls_and_runs(tmp_path: Path) -> None:
    text = "import replaydbg\nprint(replaydbg.key(), replaydbg.key())"

    first, second = record(tmp_path, text), record(tmp_path, text)

    assert len({*first.stdout.split(), *second.stdout.split(), replaydbg.key(), replaydbg.key()}) == 6
    assert replaydbg_run(tmp_path, "replay", "one.rdbg").stdout == second.stdout


def test_a_resumed_program_keeps_the_rows_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind its next checkpoint, where it is started without their directories on its path."""
    about = tmp_path / "site" / "sensor-1.dist-info"
    about.mkdir(parents=True)
    (about / "entry_points.txt").write_text("[replaydbg.gates]\nsensor = sensor_rows:ROWS\n")
    rows = "from replaydbg.gates.row import rows\nROWS = rows('sensor', 'measure')\n"
    (tmp_path / "site" / "sensor_rows.py").write_text(rows)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    record(tmp_path, counting(each="if number == 10: os.kill(os.getpid(), 9)"))

    resumed = replaydbg_run(tmp_path, "resume", "one.rdbg", "--in-flight=skip", "-o", "two.rdbg")

    assert (resumed.status, resumed.stdout) == (0, b"done 300 True\n"), resumed
    with open_recording(tmp_path / "two.rdbg") as recording:
        assert "sensor.measure" in {each.name for each in recording.header.gates}


_PREPARES = """import json, sys
from pathlib import Path
from replaydbg.record import continuing
live = Path("one.rdbg-live")
live.mkdir()
(live / "header.json").write_text(json.dumps({"tool": "0.0.1"}))
sys.argv = ["continuing.py", str(live), "next", "0", "0", "", ""]
continuing.main()
"""


def test_a_tool_that_was_replaced_meanwhile(tmp_path: Path) -> None:
    ended = run([sys.executable, "-c", _PREPARES], cwd=tmp_path, env=dict(os.environ), timeout=_TIMEOUT)

    assert ended.status == -signal.SIGKILL
    assert ended.stderr.decode() == (
        "replaydbg: the program cannot continue from its checkpoint: replaydbg 0.0.1 was replaced by "
        f"{replaydbg.__version__} meanwhile. Its recording can be resumed.\n"
    )
