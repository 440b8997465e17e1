"""`resume` refuses recordings that it does not trust or cannot write, and files without a name."""

import json
import shlex
import socket
import sys
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.resume.going_on import KILLED, record_in, resume_in, run_in

pytestmark = pytest.mark.slow

_PROGRAM = """
import os, tempfile
unnamed = tempfile.TemporaryFile(dir="below")
directory = os.open("below", os.O_RDONLY)
os.stat(".")
os.mkdir("made", dir_fd=directory)
print(os.listdir("below"))
"""
# Bytecode that is cached under the limit would be cut off, too.
_LIMITED = "export PYTHONDONTWRITEBYTECODE=1; ulimit -f"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a recording of the program, which was killed before it made a directory."""
    (tmp_path / "below").mkdir()
    (tmp_path / "program.py").write_text(_PROGRAM)
    record_in(tmp_path, "whole")
    (tmp_path / "below" / "made").rmdir()
    with open_recording(tmp_path / "whole.rdbg") as recording:
        (made,) = [each.number for each in recording.events(gate="posix.mkdir") if isinstance(each, Event)]
    assert record_in(tmp_path, "killed", killed_at=made - 1).status in KILLED
    return tmp_path


def test_a_call_relative_to_a_directory_is_looked_up_there(folder: Path) -> None:
    (folder / "made").mkdir()
    assert b"not made before, will be made" in resume_in(folder, "killed", "--plan").stdout
    (folder / "below" / "made").mkdir()

    planned = resume_in(folder, "killed", "--plan")

    # It was killed before the log had the time of the call.
    shown = planned.stdout.decode()
    assert f"{folder / 'below' / 'made'} is there, but perhaps not by this call" in shown


def test_a_file_without_a_name_is_not_called_by_its_directory(folder: Path) -> None:
    planned = resume_in(folder, "killed", "--plan")

    assert "an unnamed file in below" in planned.stdout.decode()


def test_a_foreign_recording_can_be_planned(folder: Path) -> None:
    of_another = ["env", f"XDG_DATA_HOME={folder / 'data'}", sys.executable, "-m", "replaydbg", "resume", "killed.rdbg"]

    planned, refused = run_in(folder, [*of_another, "--plan"]), run_in(folder, of_another)

    assert planned.status == 0, planned
    assert refused.status == 2
    assert b"not recorded by you with this installation" in refused.stderr


def test_a_damaged_recording_is_called_damaged(folder: Path) -> None:
    data = (folder / "killed.rdbg").read_bytes()
    (folder / "killed.rdbg").write_bytes(data[: len(data) * 3 // 4])

    refused = resume_in(folder, "killed")

    assert refused.status == 2
    assert b"it is damaged, so that nothing shows whether you recorded it" in refused.stderr


def test_one_with_a_changed_byte_is_called_damaged(folder: Path) -> None:
    data = bytearray((folder / "killed.rdbg").read_bytes())
    data[len(data) * 3 // 4] ^= 1
    (folder / "killed.rdbg").write_bytes(data)

    refused = resume_in(folder, "killed")

    assert refused.status == 2
    assert b"it is damaged, so that nothing shows whether you recorded it" in refused.stderr


def test_a_full_disk_leaves_nothing_behind(folder: Path) -> None:
    words = [sys.executable, "-m", "replaydbg", "resume", "--force", "-o", "new.rdbg", "killed.rdbg"]

    refused = run_in(folder, ["sh", "-c", f"{_LIMITED} 8; exec {shlex.join(words)}"])

    assert refused.status == 2, refused
    assert b"Traceback" not in refused.stderr
    assert not list(folder.glob("new*"))


@pytest.mark.parametrize(
    ("call", "is_used"),
    [
        ("signal.signal(15, signal.SIG_DFL)", False),
        ("time.localtime(15)", False),
        ("os.getpgid(0), os.nice(0), os.umask(15)", False),
        ("os.fstatvfs(15)", True),
        ("select.select([15], [], [], 0)", True),
        ("subprocess.run(['true'], pass_fds=[15])", True),
        ("os.access('x', os.R_OK, dir_fd=15)", True),
    ],
)
def test_a_number_is_a_descriptor_only_where_a_call_takes_one(tmp_path: Path, call: str, *, is_used: bool) -> None:
    (tmp_path / "program.py").write_text(f"import os, select, signal, subprocess, time\n{call}\nos.utime('.')\n")
    words = [sys.executable, "-m", "replaydbg", "record", "-q", "--children=none"]
    inherit = ["bash", "-c", 'exec 15<.; exec "$@"', "bash"]
    run_in(tmp_path, [*inherit, *words, "-o", "whole.rdbg", "program.py"])
    with open_recording(tmp_path / "whole.rdbg") as recording:
        (touched,) = [each.number for each in recording.events(gate="posix.utime") if isinstance(each, Event)]
    run_in(tmp_path, [*inherit, *words, "-o", "killed.rdbg", "program.py"], touched - 1)

    planned = resume_in(tmp_path, "killed", "--plan").stdout.decode()

    (row,) = [line for line in planned.splitlines() if "(descriptor 15)" in line]
    assert ("inherited descriptor, never used (descriptor 15): closed" in row) != is_used, planned


def test_the_reason_why_the_log_cannot_be_written_is_named(folder: Path) -> None:
    words = [sys.executable, "-m", "replaydbg", "resume", "--force", "-o", "new.rdbg", "killed.rdbg"]

    # 972,800 bytes: enough for the old part, but not for a log that is written on, which begins with 1 MiB.
    refused = run_in(folder, ["sh", "-c", f"{_LIMITED} 1900; exec {shlex.join(words)} --in-flight=skip"])

    assert refused.status == 2, refused
    assert b"the log of the new recording cannot be written: File too large." in refused.stderr


@pytest.mark.parametrize("output", ["killed", "killed.rdbg", "whole.rdbg"])
def test_no_recording_is_replaced(output: str, folder: Path) -> None:
    name = output.removesuffix(".rdbg") + ".rdbg"
    before = (folder / name).read_bytes()

    refused = run_in(folder, [sys.executable, "-m", "replaydbg", "resume", "-o", output, "killed.rdbg"])

    sentence = f"replaydbg: '{name}' exists already: choose another name with -o.\n"
    assert (refused.status, refused.stderr.decode()) == (2, sentence)
    assert (folder / name).read_bytes() == before


def test_what_is_left_closed_is_listed_as_lost(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
    begins = f"import os, socket\nlistener = socket.create_server(('127.0.0.1', {port}))\n"
    (tmp_path / "program.py").write_text(f"{begins}os.kill(os.getpid(), 9)\n")
    record_in(tmp_path, "killed")
    with socket.create_server(("127.0.0.1", port)):
        planned = resume_in(tmp_path, "killed", "--plan").stdout.decode()
        refused = resume_in(tmp_path, "killed").stderr.decode()
        forced = [sys.executable, "-m", "replaydbg", "resume", "--force", "--in-flight=skip", "killed.rdbg"]
        lost = run_in(tmp_path, forced).stderr.decode()

    listener = f"listeners: 127.0.0.1:{port}"
    assert f"  refused    {listener} (descriptor 3): Address already in use\n" in planned, planned
    assert f"{listener}: Address already in use" in refused
    assert f"{listener} (descriptor 3): Address already in use; its descriptor is closed\n" in lost, lost
    assert "  reopened   listeners" not in lost and "  refused" not in lost


def test_a_plan_without_the_fence(folder: Path) -> None:
    planned = resume_in(folder, "killed", "--plan", "--no-fence")

    assert planned.status == 0 and b"live after event" in planned.stdout
    assert b"replaying without the fence (--no-fence)" in planned.stderr


def test_what_was_done_after_logging_stopped_is_not_listed(tmp_path: Path) -> None:
    text = "import os\nos.mkdir('made')\nfor _ in range(60_000):\n    os.stat('.')\nos.mkdir('later')\n"
    (tmp_path / "program.py").write_text(text)
    record = [sys.executable, "-m", "replaydbg", "record", "-q", "--children=none", "--max-size=1M", "-o", "one.rdbg"]
    assert run_in(tmp_path, [*record, "program.py"]).status == 0
    assert (tmp_path / "later").exists()

    at = ["--plan", "--at", "5"]
    planned, facts = resume_in(tmp_path, "one", *at), resume_in(tmp_path, "one", *at, "--json")

    cause = "the recording reached its size limit"
    sentence = f"logging stopped ({cause}): what was done after that is not listed, and is done again\n"
    assert sentence in planned.stdout.decode(), planned
    assert json.loads(facts.stdout)["logging_stopped"] == cause
