"""Each call after a moment fails once, one future each, and a table says what came of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from replaydbg.gates.faults import COLUMNS, column_of, error_number
from replaydbg.gates.table import OWN
from tests.futures.made import Ground

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "futures" / "faults"


def sweep(ground: Ground, faults: str, *words: str, gate: str = "posix.getppid") -> dict[str, Any]:
    """Return what came of the faults after the program's call of `gate`."""
    at = str(ground.event(gate))
    finished = ground.replaydbg("futures", "one.rdbg", "--at", at, "--faults", faults, "--json", *words)
    assert finished.status in (0, 1, 3), finished.stderr.decode()
    found: dict[str, Any] = json.loads(finished.stdout)
    return found


def outcomes(found: dict[str, Any]) -> list[tuple[str, int, str, str]]:
    """Return call, number, fault and verdict of each trial with one fault."""
    trials = [(each["faults"][0], each["verdict"]) for each in found["trials"] if len(each["faults"]) == 1]
    return [(fault["gate"].partition(".")[2], fault["k"], fault["fault"], verdict) for fault, verdict in trials]


def test_the_table_names_gates_and_errors_that_exist() -> None:
    names = {row.full_name for row in OWN}
    others = {"SHORT", "TIMEOUT", "ORDER", "STEP"}

    assert [gate for column in COLUMNS for gate in column.gates if gate not in names] == []
    assert [each for column in COLUMNS for each in column.faults if each not in others and not error_number(each)] == []


def test_the_reference_has_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()

    for column in COLUMNS:
        gates = ", ".join(f"`{gate.partition('.')[2]}`" for gate in column.gates)
        faults = ", ".join(f"`{fault}`" for fault in column.faults)
        assert f"| `{column.name}` | {gates} | {faults} |" in page


def test_a_call_is_named_in_three_ways() -> None:
    column, gate, function = column_of("rename"), column_of("posix.replace"), column_of("replace")

    assert column is not None and column.gates == ("posix.rename", "posix.replace")
    assert gate is not None and function is not None
    assert gate.gates == function.gates == ("posix.replace",) and gate.faults == column.faults
    assert column_of("nothing") is None


@pytest.mark.slow
def test_the_limit_counts_futures_in_which_the_fault_came(tmp_path: Path) -> None:
    """One call more than the usual future makes is tried, too, and mostly never made."""
    ground = Ground.make(tmp_path, (PROGRAMS / "careless_save.py").read_text())
    every = sweep(ground, "write,close,open")["trials"]

    few, enough = (sweep(ground, "write,close,open", "-n", str(limit)) for limit in (3, len(every) + 1))

    assert len(every) > 3 and [len(few["trials"]), few["is_cut"]] == [3, True]
    assert [len(enough["trials"]), enough["is_cut"]] == [len(every), False]


@pytest.mark.slow
def test_a_client_that_tries_again_forgets_one_error(tmp_path: Path) -> None:
    """If the body of an answer is missing, `http.client` raises no OSError."""
    ground = Ground.make(tmp_path, (PROGRAMS / "http_retries.py").read_text())

    found = sweep(ground, "connect,accept,send,recv,socket")

    verdicts = outcomes(found)
    assert len(verdicts) >= 20 and {verdict for *_, verdict in verdicts} == {"passed", "failed"}
    failed = {(gate, fault) for gate, _, fault, verdict in verdicts if verdict == "failed"}
    assert failed == {("socket.sendall", fault) for fault in ("ECONNRESET", "EPIPE", "TIMEOUT")}
    assert all("IncompleteRead" in each["ending"] for each in found["trials"] if each["verdict"] == "failed")


@pytest.mark.slow
def test_a_careful_program_survives_each_fault(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, (PROGRAMS / "careful_save.py").read_text())

    found = sweep(ground, "write,fsync,rename,close", "-o", "kept", "--keep", "all")

    assert found["without_fault"]["verdict"] == "passed"
    assert {call for call, *_ in outcomes(found)} == {"FileIO.write", "fsync", "replace", "FileIO.close"}
    assert [each for each in outcomes(found) if each[3] != "passed" and each[0] != "FileIO.close"] == []
    assert ("FileIO.write", 1, "ENOSPC", "passed") in outcomes(found)
    assert all(ground.replay(each["recording"]).status == each["status"] for each in found["trials"][::3])


@pytest.mark.slow
def test_a_careless_program_loses_what_it_had(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, (PROGRAMS / "careless_save.py").read_text())

    finished = ground.replaydbg(
        "futures", "one.rdbg", "--at", str(ground.event("posix.getppid")), "--faults", "write:ENOSPC", "-o", "kept"
    )

    lines = finished.stdout.decode().splitlines()
    assert finished.status == 1 and lines[0].startswith("1 future of one.rdbg with faults after event "), finished
    assert lines[1] == "Without a fault: passed"
    assert lines[2].split() == ["call", "k", "fault", "line", "outcome"]
    assert lines[3].split()[:5] == ["FileIO.write", "1", "ENOSPC", "program.py:9", "failed:"]
    assert lines[4].startswith("Open one: replaydbg debug ") and lines[4].endswith("/kept/fault-write-ENOSPC-1.rdbg")
    assert ground.replay("kept/fault-write-ENOSPC-1.rdbg").status == 1


_EACH = """import os, time
os.getppid()
for number in range(3):
    try:
        with open(f"file{number}", "wb", 0) as file:
            for _ in range(2):
                assert file.write(b"0123456789") == 10
    except OSError as error:
        print(number, error.errno)
os.getuid()
for number in range(3):
    if os.path.exists(f"file{number}"):
        print(os.path.getsize(f"file{number}"))
"""


@pytest.mark.slow
def test_the_disk_stays_full(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, _EACH)

    found = sweep(ground, "write", "-n", "200")

    assert [each[:3] for each in outcomes(found)] == [
        ("FileIO.write", number, fault) for fault in ("EIO", "ENOSPC", "SHORT") for number in range(1, 7)
    ]
    verdicts = {(each[2], each[1]): each[3] for each in outcomes(found)}
    assert {verdicts["SHORT", number] for number in range(1, 7)} == {"failed"}  # what it claims about write() is false
    last = {(each["faults"][0]["fault"], each["faults"][0]["k"]): each["last_line"] for each in found["trials"]}
    assert (last["EIO", 3], last["ENOSPC", 3]) == ("20", "0")


@pytest.mark.slow
def test_short_reads_resets_and_clocks(tmp_path: Path) -> None:
    text = """import os, select, socket, time
open("data", "wb").write(b"0123456789")
a, b = socket.socketpair()
r, w = os.pipe()
os.getppid()
def whole(read, n):
    data = b""
    while len(data) < n:
        data += read(n - len(data))
    return data
fd = os.open("data", os.O_RDONLY)
print(len(os.read(fd, 10)))
os.write(w, b"x"); a.send(b"y")
print([each is r for each in select.select([r, b], [], [])[0]])
print(b.recv(10))
begun, now = time.monotonic(), time.time()
print(round(time.time() - now), round(time.monotonic() - begun))
"""
    ground = Ground.make(tmp_path, text)

    found = sweep(ground, "read:SHORT,select,recv,clock")

    said = {(each["faults"][0]["fault"], each["faults"][0]["k"]): each for each in found["trials"]}
    assert said["ECONNRESET", 1]["exception"] == "ConnectionResetError"
    assert said["TIMEOUT", 1]["exception"] == "TimeoutError" and said["TIMEOUT", 1]["verdict"] == "failed"
    assert said["STEP", 2]["last_line"] == "3600 0" and said["STEP", 1]["last_line"] == "0 0"
    assert {key for key in said if key[0] in ("SHORT", "ORDER")} == {("SHORT", 1), ("ORDER", 1)}
    assert found["failed"] == 2


# Python 3.13 shows an exception by `traceback`, which a future cannot import if the program has imported nothing.
_PAIR = """import os, traceback
os.getppid()
try:
    os.mkdir("one")
except OSError:
    os.mkdir("two")
"""


@pytest.mark.slow
def test_two_faults_where_one_is_survived(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, _PAIR)

    found = sweep(ground, "mkdir:EACCES", "--pairs")

    pairs = [each for each in found["trials"] if len(each["faults"]) == 2]
    assert outcomes(found) == [("mkdir", 1, "EACCES", "passed")]
    assert [[fault["line"] for fault in each["faults"]] for each in pairs] == [["program.py:4", "program.py:6"]]
    assert pairs[0]["verdict"] == "failed" and pairs[0]["exception"] == "PermissionError"


@pytest.mark.slow
def test_bad_faults(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, _PAIR)
    at = ("futures", "one.rdbg", "--at", str(ground.event("posix.getppid")))

    def refusal(*words: str) -> str:
        finished = ground.replaydbg(*at, *words)
        assert finished.status == 2 and finished.stdout == b"", finished
        return finished.stderr.decode()

    assert "makes no fsync call after event" in refusal("--faults", "fsync:EIO")
    assert "it calls: mkdir (1)" in refusal("--faults", "fsync:EIO")
    assert "--faults has no call 'nothing'. Calls: open, read, write" in refusal("--faults", "nothing")
    assert "a 'mkdir' call cannot have the fault 'EPIPE'. It can have: EACCES, ENOSPC." in refusal(
        "--faults", "mkdir:EPIPE"
    )
    assert "N must be at least 1 (got 0)" in refusal("--faults", "mkdir", "-n", "0")
    assert "--pairs needs --faults" in refusal("--pairs")


@pytest.mark.slow
def test_one_answer_is_changed(tmp_path: Path) -> None:
    text = """import os, time
now = time.time()
try:
    print(os.getcwd() and time.time() - now < 100)
except TimeoutError as error:
    print("caught", error)
"""
    ground = Ground.make(tmp_path, text)
    second = ground.event("time.time", 1)

    def last_line(text: str) -> str:
        finished = ground.replaydbg("futures", "one.rdbg", "--set", text, "-n", "1", "--json", "-o", f"kept{len(text)}")
        assert finished.status == 0, finished
        (group,) = json.loads(finished.stdout)["groups"]
        assert ground.replay(group["recordings"][0]).status == group["status"]
        line: str = group["last_line"]
        return line

    assert last_line(f"event {second} = TimeoutError('late')") == "caught late"
    assert last_line(f"event {second} = 1e12") == "False"


@pytest.mark.slow
@pytest.mark.parametrize("place", ["module", "function"])
def test_a_value_is_changed_at_the_moment(place: str, tmp_path: Path) -> None:
    body = """limit = 10
data = {"a": 1}
os.getppid()
print(limit, data, os.getuid() >= 0)
"""
    inside = "".join(f"    {line}\n" for line in body.splitlines())
    text = f"import os\n{body}" if place == "module" else f"import os\ndef work():\n{inside}work()\n"
    ground = Ground.make(tmp_path, text)
    at = ground.event("posix.getppid")

    group = ground.futures(at, 1, "--set", "limit = data['b'] = limit * 2", "-o", "kept")["groups"][0]
    wrong = ground.futures(at, 1, "--set", "limit = nothing")["groups"][0]

    assert (group["verdict"], group["last_line"]) == ("passed", "20 {'a': 1, 'b': 20} True")
    replayed = ground.replay(group["recordings"][0])
    assert (replayed.status, replayed.stdout) == (0, b"20 {'a': 1, 'b': 20} True\n")
    assert wrong["verdict"] == "inconclusive" and "it raised NameError" in wrong["ending"]


@pytest.mark.slow
def test_bad_answers(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, "import os, time\ntime.time()\nos.pipe()\n")

    def refusal(*words: str) -> str:
        finished = ground.replaydbg("futures", "one.rdbg", *words)
        assert finished.status == 2 and finished.stdout == b"", finished
        return finished.stderr.decode()

    assert "--curve and --set cannot be used together" in refusal("--curve", "--set", "x = 1")
    assert "--depth and --faults cannot be used together" in refusal("--depth", "2", "--faults", "write")
    assert "--faults and --shrink cannot be used together" in refusal("--shrink", "--faults", "write")
    assert "--set must be 'event N = VALUE' or an assignment such as 'limit = 3' (got 'x')" in refusal("--set", "x")
    assert "--at is missing: the moment at which the value is changed" in refusal("--set", "x = 1")
    assert "--set takes a literal such as" in refusal("--set", "event 1 = open('x')")
    assert "No such moment '100000'" in refusal("--set", "event 100000 = 1")
    assert "whose result is no value" in refusal("--set", f"event {ground.event('posix.pipe')} = (3, 4)")
    assert "leave --at out" in refusal("--set", f"event {ground.event('time.time')} = 1.0", "--at", "1")


@pytest.mark.slow
def test_without_a_moment_the_first_call_that_fails_is_the_programs(tmp_path: Path) -> None:
    """The interpreter opens files before the program begins. The call at which the futures begin can fail, too."""
    ground = Ground.make(tmp_path, 'print(len(open("program.py").read()) > 1)\n')

    finished = ground.replaydbg("futures", "one.rdbg", "--faults", "open:EACCES", "--json")

    found = json.loads(finished.stdout)
    assert [each["faults"][0]["line"] for each in found["trials"]] == ["program.py:1"], finished


@pytest.mark.slow
def test_a_program_is_tortured_from_its_first_line(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text((PROGRAMS / "careless_save.py").read_text())
    ground = Ground(tmp_path, 0)

    finished = ground.replaydbg("torture", "--faults", "write:ENOSPC,mkdir", "--json", "program.py")

    found = json.loads(finished.stdout)
    assert finished.status == 1, finished
    assert outcomes(found) == [("FileIO.write", 1, "ENOSPC", "failed"), ("FileIO.write", 2, "ENOSPC", "failed")]
    assert found["never_called"] == ["mkdir"] and found["recording"] == "run-1"
