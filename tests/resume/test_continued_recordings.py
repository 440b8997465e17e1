"""What a resumed program wrote is an ordinary recording: the line that made it fail is found in its live part."""

import json
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from replaydbg.render.resume_text import more_acts
from tests.resume.test_resume_command import record_killed, replaydbg

pytestmark = pytest.mark.slow

_FAILS_LATER = """import os, signal
total = 0
for turn in range(40):
    os.stat("program.py")
    if turn == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    if turn == 30:
        total = -1000
    total += turn
print(total)
"""


def test_it_is_bisected(tmp_path: Path) -> None:
    record_killed(tmp_path, _FAILS_LATER)
    resumed = replaydbg(tmp_path, "resume", "one.rdbg", "--in-flight=skip", "-o", "two.rdbg")
    assert (resumed.status, resumed.stdout) == (0, b"-655\n"), resumed

    found = replaydbg(tmp_path, "bisect", "snapshots", "two.rdbg", "--bad", "total < 0", "--json")

    assert found.status == 1, found
    assert json.loads(found.stdout)["culprit"]["line"] == 8, found


_ACTS = """import os, signal, sqlite3
os.getppid()
with open("out", "ab", buffering=0) as file:
    print("printed", flush=True)
    file.write(b"six by")
    os.rename("out", "renamed")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_done_after_a_moment_is_listed_by_file(tmp_path: Path) -> None:
    record_killed(tmp_path, _ACTS)
    with open_recording(tmp_path / "one.rdbg") as recording:
        (first,) = [each.number for each in recording.events(gate="posix.getppid") if isinstance(each, Event)]

    plan = replaydbg(tmp_path, "resume", "one.rdbg", "--at", str(first), "--plan")

    acts = plan.stdout.decode().partition("  done after ")[2].splitlines()
    assert acts[0].endswith(": posix.rename('out', 'renamed') (program.py:6)"), plan
    assert acts[1].endswith(": out: write, 6 bytes (program.py:5)")
    assert acts[2].strip() == "and 1 write to standard output or error"


def test_a_list_of_writes_to_the_standard_streams_alone_begins_with_their_number() -> None:
    assert more_acts(0, 6, 6) == ["6 writes to standard output or error"]
    assert more_acts(0, 9, 6) == ["and 3 earlier ones", "and 6 writes to standard output or error"]
    assert more_acts(1, 2, 1) == ["and 1 write to standard output or error"]
