"""All processes of a group are replayed at once, and their output comes in the order in which they wrote it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.log.reader import open_recording
from replaydbg.replay.group_replay import OutputMerger, StreamWrite, replay_all
from tests.fuzz import framing
from tests.harness import tool
from tests.harness.children import PROGRAMS, completed
from tests.harness.replays import Outcome, run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until

_PRINTS = """
import os, subprocess, sys
print("parent", flush=True)
pipes = [os.pipe() for _ in range(3)]
for child in range(3):
    if os.fork() == 0:
        for number in range(20):
            os.read(pipes[child][0], 1)  # they take turns: who writes first is otherwise left to the kernel
            os.write(1 + number % 2, f"{child} {number}\\n".encode())
            os.write(pipes[(child + 1) % 3][1], b".")
        os._exit(child)
os.write(pipes[0][1], b".")
for _ in range(3):
    os.wait()
subprocess.run([sys.executable, "-c", "print('program')"])
taken = subprocess.run([sys.executable, "-c", "print('taken')"], capture_output=True, text=True).stdout
print("took", taken)
"""


def _record(place: Path, text: str, *options: str) -> Outcome:
    (place / "program.py").write_text(text)
    command = tool.record(sys.executable, place / "r", ["program.py"], options=[*PROGRAMS, *options])
    recorded = run(command, cwd=place, env=without_steering(os.environ))
    completed(place / "r.rdbgs")
    return recorded


def _replay(place: Path, *words: str, quiet: bool = True) -> Outcome:
    command = [sys.executable, "-m", "replaydbg", "replay", *(["-q"] if quiet else []), *words]
    return run(command, cwd=place, env=without_steering(os.environ))


def test_what_went_to_a_terminal_of_the_childs_is_not_shown(tmp_path: Path) -> None:
    recorded = _record(
        tmp_path,
        "import os\nprint('parent', flush=True)\npid, master = os.forkpty()\n"
        "if pid == 0:\n    print('child', flush=True)\n    os._exit(0)\n"
        "os.read(master, 100)\nos.waitpid(pid, 0)\n",
    )

    assert recorded.stdout == "parent\n"
    assert _replay(tmp_path, "r").stdout == "parent\n"


def test_the_output_of_all_comes_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PRINTS)
    both = tmp_path / "both"
    command = tool.record(sys.executable, tmp_path / "r", ["program.py"], options=PROGRAMS)
    with both.open("wb") as file:
        subprocess.run(command, cwd=tmp_path, stdout=file, stderr=file, timeout=60, check=True)
    completed(tmp_path / "r.rdbgs")

    replayed = tmp_path / "replayed"
    with replayed.open("wb") as file:
        words = [sys.executable, "-m", "replaydbg", "replay", "-q", "r"]
        subprocess.run(words, cwd=tmp_path, stdout=file, stderr=file, timeout=60, check=True)

    assert len(both.read_bytes().splitlines()) == 64
    assert replayed.read_bytes() == both.read_bytes()


def test_output_that_another_process_or_a_file_got_is_not_shown(tmp_path: Path) -> None:
    recorded = _record(
        tmp_path,
        "import os, subprocess, sys\n"
        "program = [sys.executable, '-c', 'print(1)']\n"
        "with open('file', 'wb') as file:\n    subprocess.run(program, stdout=file)\n"
        "subprocess.run(program, stdout=subprocess.DEVNULL)\n"
        "subprocess.run(program, stdout=subprocess.PIPE)\n"
        "subprocess.run(program, stdout=sys.stderr)\n"
        "if os.fork() == 0:\n"
        "    os.dup2(os.open('file', os.O_WRONLY), 1)\n"
        "    os.write(1, b'2')\n    os._exit(0)\n"
        "os.wait()\n",
    )

    replayed = _replay(tmp_path, "r")

    assert (recorded.status, recorded.stdout, recorded.stderr) == (0, "", "1\n")
    assert (replayed.status, replayed.stdout + replayed.stderr) == (0, "1\n")


def test_it_ends_as_the_first_process(tmp_path: Path) -> None:
    _record(tmp_path, "import os\nif os.fork() == 0:\n    os._exit(1)\nos.wait()\nos._exit(7)\n")

    assert _replay(tmp_path, "r").status == 7


def test_a_divergence_of_one_process(tmp_path: Path) -> None:
    _record(
        tmp_path,
        "import ctypes, os\n"
        # Random bytes that the kernel gives each program: getauxval(AT_RANDOM).
        "library = ctypes.CDLL(None)\nlibrary.getauxval.restype = ctypes.c_void_p\n"
        "if os.fork() == 0:\n    print(ctypes.string_at(library.getauxval(25), 16), flush=True)\n    os._exit(0)\n"
        "os.wait()\nprint('whole')\n",
    )

    replayed = _replay(tmp_path, "r")

    assert replayed.status == 4
    assert "whole\n" in replayed.stdout
    assert "r/2" in replayed.stderr
    assert "DIVERGENCE" in replayed.stderr.upper()


def test_a_recording_that_is_gone(tmp_path: Path) -> None:
    _record(
        tmp_path,
        "import os\nif os.fork() == 0:\n    print('child', flush=True)\n    os._exit(0)\nos.wait()\nprint(1)\n",
    )
    (tmp_path / "r.rdbgs" / "2.rdbg").unlink()

    replayed = _replay(tmp_path, "r")

    assert (replayed.status, replayed.stdout) == (2, "1\n")
    assert replayed.stderr.startswith("replaydbg: r/2: ")
    assert replayed.stderr.count("\n") == 1


def test_what_a_process_wrote_is_damaged(tmp_path: Path) -> None:
    _record(tmp_path, "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\nprint(1)\n")
    path = tmp_path / "r.rdbgs" / "1.rdbg"
    with open_recording(path) as recording:
        sections = {name: b"".join(recording.pieces(name)) for name in recording.sections}
    path.write_bytes(framing.sealed(sections | {"transfers": b"x" * 112}))

    replayed = _replay(tmp_path, "r", quiet=False)

    assert (replayed.status, replayed.stdout) == (0, "1\n")
    assert "r/1: its output may be missing or out of order: its section 'transfers' has no header." in replayed.stderr


def test_a_process_whose_end_is_unknown(tmp_path: Path) -> None:
    _record(
        tmp_path,
        "import os, signal, time\n"
        "if os.fork() == 0:\n    os.write(1, b'begins')\n    time.sleep(60)\n"
        "time.sleep(0.5)\nos.kill(0, signal.SIGKILL)\n",
    )

    replayed = _replay(tmp_path, "r", quiet=False)

    assert replayed.stdout == "begins"
    assert replayed.status in (-9, 6)
    assert "replaydbg: r/2: the recording ends here" in replayed.stderr


def test_results_as_json(tmp_path: Path) -> None:
    _record(tmp_path, _PRINTS)

    replayed = _replay(tmp_path, "r", "--json", quiet=False)
    facts = json.loads(replayed.stdout)

    assert [(each["process"], each["error"], each["replay"]["is_whole"]) for each in facts["processes"]] == [
        (number, None, True) for number in range(1, 7)
    ]
    assert [each["replay"]["status"] for each in facts["processes"]] == [0, 0, 1, 2, 0, 0]
    assert "took taken" in replayed.stderr


@pytest.mark.parametrize("words", [("--to", "5"), ("--current-source",), ("--current-source", "--until-outcome")])
def test_options_for_one_process(words: tuple[str, ...], tmp_path: Path) -> None:
    _record(tmp_path, "import os\nif os.fork():\n    os.wait()\n")

    replayed = _replay(tmp_path, *words, "r")

    assert replayed.status == 2
    assert "need one process of the group, such as r/1." in replayed.stderr


def test_an_interrupt_ends_all_replays(tmp_path: Path) -> None:
    _record(
        tmp_path, "import os\nif os.fork() == 0:\n    for _ in range(10 ** 8): pass\n    os._exit(0)\nos.kill(0, 9)\n"
    )
    words = [sys.executable, "-m", "replaydbg", "replay", "r"]

    with subprocess.Popen(words, cwd=tmp_path, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: len(_members_of(process.pid)) > 2, message=lambda: _members_of(process.pid))
        process.send_signal(signal.SIGINT)
        status = process.wait(30)

    assert status == -signal.SIGINT
    wait_until(lambda: not _members_of(process.pid), message=lambda: _members_of(process.pid))


def _members_of(session: int) -> list[int]:
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = each.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(each.parent.name))
    return found


# ---- the order ----


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2), st.binary(max_size=5), st.booleans())), st.randoms())
def test_any_arrival_gives_the_recorded_order(writes: list[tuple[int, int, bytes, bool]], random: Random) -> None:
    """Whatever each process wrote, and in whatever pieces it arrives."""
    shown: list[tuple[int, bytes]] = []
    order: dict[int, list[StreamWrite]] = {}
    streams: dict[tuple[int, int], bytes] = {}
    for ticket, (process, stream, data, is_shown) in enumerate(writes, 1):
        order.setdefault(process, []).append(StreamWrite(ticket, process, stream, len(data), is_shown))
        streams[process, stream] = streams.get((process, stream), b"") + data
    with OutputMerger(list(order.values()), lambda stream, data: shown.append((stream, data))) as merger:
        left = {key: data for key, data in streams.items() if data}
        while left:
            process, stream = random.choice(sorted(left))
            data = left.pop((process, stream))
            size = random.randint(1, len(data))
            merger.put(process, stream, data[:size])
            if data[size:]:
                left[process, stream] = data[size:]
        for process in order:
            merger.ends(process)
        merger.finish()

    wanted = [(stream, data) for _, stream, data, is_shown in writes if is_shown and data]
    assert shown == wanted


def test_what_no_gate_saw_comes_last() -> None:
    shown: list[tuple[int, bytes]] = []
    with OutputMerger([[StreamWrite(1, 1, 1, 2, True)]], lambda stream, data: shown.append((stream, data))) as merger:
        merger.put(1, 1, b"ab of C code")
        merger.ends(1)
        merger.finish()

    assert shown == [(1, b"ab"), (1, b" of C code")]


def test_a_replay_that_is_killed_has_no_report() -> None:
    def one(number: int, out: int, err: int) -> bytes:
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return b"done"

    assert replay_all([1, 2, 3], one, OutputMerger([], lambda stream, data: None), width=2) == {
        1: b"done",
        2: b"",
        3: b"done",
    }
