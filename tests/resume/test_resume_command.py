"""`replaydbg resume` lets a killed program run on, and says in one sentence why another one cannot."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from replaydbg.resources.kinds import OpenedSocket
from replaydbg.resume.going_live import Listener, ResumeChoices
from replaydbg.resume.hooks import Hooks
from replaydbg.resume.launcher import plan_resume, resume
from replaydbg.resume.outside_acts import OutsideAct
from replaydbg.resume.plan import Plan
from replaydbg.resume.plan_rows import Fate
from tests.harness import tool
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.resumes.rounds import PROGRAMS, missing, one_round

pytestmark = pytest.mark.slow

_TIMEOUT = 60.0
# It kills itself, so the call in flight is known: the resumed program goes on as if it had been skipped.
_KILLED = """import os, signal, sys
with open("out", "a") as file:
    file.write("one\\n")
    file.flush()
    print("printed", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    file.write("two\\n")
print("done")
sys.exit(3)
"""
_SKIP = "--in-flight=skip"


def replaydbg(folder: Path, *words: str) -> Finished:
    """Run a command that finds its recordings, and makes new ones, in `folder`."""
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}
    return run([sys.executable, "-m", "replaydbg", *words], cwd=folder, env=env, timeout=_TIMEOUT)


def record_killed(folder: Path, text: str = _KILLED) -> None:
    (folder / "program.py").write_text(text)
    command = tool.record(sys.executable, Path("one.rdbg"), ["program.py"])
    assert run(command, cwd=folder, env=without_steering(os.environ), timeout=_TIMEOUT).status in (-9, 137)


def refusal(folder: Path, *words: str) -> str:
    """Return the sentence with which `resume one.rdbg` refuses."""
    finished = replaydbg(folder, "resume", "one.rdbg", *words)
    assert finished.status == 2, finished
    assert b"Traceback" not in finished.stderr
    assert not (folder / "two.rdbg").exists() and not (folder / "two.rdbg-live").exists()
    lines = finished.stderr.decode().splitlines()
    return "\n".join(line for line in lines if not line.startswith("replaydbg: replaying"))


def test_a_killed_program_runs_on(tmp_path: Path) -> None:
    record_killed(tmp_path)

    resumed = replaydbg(tmp_path, "resume", "one.rdbg", _SKIP, "-o", "two.rdbg")

    assert resumed.status == 3
    assert resumed.stdout == b"done\n"  # what was printed before is not printed again
    assert (tmp_path / "out").read_text() == "one\ntwo\n"
    assert f"; then the program runs live in {tmp_path}, with all your rights\n" in resumed.stderr.decode()
    assert b"out at byte 4" in resumed.stderr
    assert re.search(rb"posix.kill\([0-9]+, 9\): skip \(nothing shows whether it was made\)", resumed.stderr)
    replayed = replaydbg(tmp_path, "replay", "two.rdbg")
    assert (replayed.status, replayed.stdout) == (3, b"printed\ndone\n")
    assert replaydbg(tmp_path, "verify", "two.rdbg").status == 0
    with open_recording(tmp_path / "two.rdbg") as recording:
        (entry,) = recording.header.raw["resumed"]
    assert set(entry) == {"from", "event", "when"} and entry["from"] == "one"


def test_the_plan_changes_nothing(tmp_path: Path) -> None:
    record_killed(tmp_path)
    before = sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir())

    plan = replaydbg(tmp_path, "resume", "one.rdbg", "--plan", "--json")

    assert plan.status == 0
    assert sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir()) == before
    facts = json.loads(plan.stdout)
    (call,) = facts["in_flight"]
    assert (call["call"], call["decision"]) == ("posix.kill", "unknown")
    assert [row["text"] for row in facts["resources"] if row["kind"] == "files"] == [f"{tmp_path}/out at byte 4"]


def test_an_earlier_moment(tmp_path: Path) -> None:
    record_killed(tmp_path)
    with open_recording(tmp_path / "one.rdbg") as recording:
        gates = [event.gate for event in recording.events(controls=False)]  # type: ignore[union-attr]
    at = str(gates.index("_io.FileIO.write") + 1)

    plan = replaydbg(tmp_path, "resume", "one.rdbg", "--at", at, "--plan")
    again = replaydbg(tmp_path, "resume", "one.rdbg", "--at", at, "-o", "two.rdbg")

    # What it wrote there is found on the disk. It asks for its process id only afterwards, and kills itself again.
    assert b"done after" in plan.stdout and b"posix.kill" not in plan.stdout
    assert b"found on the disk, not written again" in again.stderr
    assert again.status in (-9, 137)
    assert (tmp_path / "out").read_text() == "one\n"


@pytest.mark.parametrize(
    ("moment", "printed"), [("@start", b"one\ntwo\n"), ("@#1", b"two\n"), ("@#named", b"two\n"), ("@end", b"")]
)
def test_a_moment_that_names_an_event(moment: str, printed: bytes, tmp_path: Path) -> None:
    text = "import replaydbg\nprint('one', flush=True)\nreplaydbg.snapshot('named')\nprint('two', flush=True)\n"
    (tmp_path / "program.py").write_text(text)
    command = tool.record(sys.executable, Path("one.rdbg"), ["program.py"])
    assert run(command, cwd=tmp_path, env=without_steering(os.environ), timeout=_TIMEOUT).status == 0

    resumed = replaydbg(tmp_path, "resume", "one.rdbg", "--at", moment, "-q", "-o", "two.rdbg")

    assert (resumed.status, resumed.stdout) == (0, printed), resumed.stderr


def test_files_that_differ_are_listed(tmp_path: Path) -> None:
    record_killed(tmp_path)

    (tmp_path / "out").write_text("On\n")
    assert "out is shorter: 3 bytes, recorded 4" in refusal(tmp_path, _SKIP)
    (tmp_path / "out").write_text("two\n")
    assert "out has other content: bytes 0 to 4" in refusal(tmp_path, _SKIP)
    (tmp_path / "out").write_text("one\nmore")
    assert "out is longer: 8 bytes, recorded 4" in refusal(tmp_path, _SKIP)
    (tmp_path / "out").unlink()
    assert "out is gone" in refusal(tmp_path, _SKIP)

    assert replaydbg(tmp_path, "resume", "one.rdbg", _SKIP, "--force").status == 3
    assert (tmp_path / "out").read_text().endswith("two\n")


def test_what_is_not_known_is_asked_about(tmp_path: Path) -> None:
    record_killed(tmp_path)

    sentence = refusal(tmp_path)
    assert re.search(
        r"posix\.kill\([0-9]+, 9\) was in flight, and nothing shows whether it was made: choose ", sentence
    )
    assert "choose --in-flight=repeat or --in-flight=skip" in sentence
    # Its process id is another one now, so the signal reaches nobody.
    assert b"ProcessLookupError" in replaydbg(tmp_path, "resume", "one.rdbg", "--in-flight=repeat", "-q").stderr


def test_a_terminal_is_asked(tmp_path: Path) -> None:
    record_killed(tmp_path)
    command = [sys.executable, "-m", "replaydbg", "resume", "one.rdbg", "-o", "two.rdbg"]
    ours, terminal = pty.openpty()
    with subprocess.Popen(
        command, cwd=tmp_path, env=without_steering(os.environ), stdin=terminal, stdout=terminal, stderr=terminal,
        start_new_session=True,
    ) as resumed:  # fmt: skip
        os.close(terminal)
        shown = b""
        while b"[r]epeat, [s]kip, Enter to stop: " not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, b"what\ns\n")
        with suppress(OSError):  # the terminal's other side is closed
            while data := os.read(ours, 4096):
                shown += data
    os.close(ours)

    assert resumed.returncode == 3
    assert shown.count(b"was in flight: nothing shows whether it was made. Make it now?") == 2
    assert (tmp_path / "out").read_text() == "one\ntwo\n"


class _Undoes:
    """A hook that empties the file which the program had written after the moment."""

    def __init__(self, path: Path) -> None:
        self.path, self.calls = path, list[str]()

    def compensate(self, acts: Sequence[OutsideAct]) -> None:
        self.calls = [act.call for act in acts]
        self.path.write_text("")


def test_a_hook_undoes_what_was_done_after_the_moment(tmp_path: Path) -> None:
    text = 'import os\nwith open("out", "w") as file:\n    os.getppid()\n    file.write("one\\n")\nos.mkdir("made")\n'
    (tmp_path / "program.py").write_text(text)
    command = tool.record(sys.executable, Path("one.rdbg"), ["program.py"])
    assert run(command, cwd=tmp_path, env=without_steering(os.environ), timeout=_TIMEOUT).status == 0
    with open_recording(tmp_path / "one.rdbg") as recording:
        at = next(event.number for event in recording.events(gate="posix.getppid") if isinstance(event, Event))
    (tmp_path / "made").rmdir()
    undoes = _Undoes(tmp_path / "out")

    result = resume(
        tmp_path / "one.rdbg",
        choices=ResumeChoices(at=at),
        output=tmp_path / "two.rdbg",
        hooks=Hooks("one", [("undoes", undoes)]),
    )

    assert result.status == 0
    assert undoes.calls == ["posix.mkdir", "_io.FileIO.write"]
    assert (tmp_path / "out").read_text() == "one\n"
    assert (tmp_path / "made").is_dir()


class _Reopens:
    """A hook that has a descriptor for each connection."""

    def reopen(self, resource: object) -> int | None:
        is_connection = isinstance(resource, OpenedSocket) and resource.peer is not None
        return os.open("/dev/null", os.O_RDWR) if is_connection else None


_CONNECTED = """import os, signal, socket
with socket.create_server(("127.0.0.1", 0)) as server:
    connection = socket.create_connection(server.getsockname())
os.kill(os.getpid(), signal.SIGKILL)
os.fstat(connection.fileno())
"""


def test_the_plan_names_a_hook_that_has_reopened_something(tmp_path: Path) -> None:
    record_killed(tmp_path, _CONNECTED)
    plans: list[Plan] = []
    hooks = Hooks("one", [("shop", _Reopens())])
    choices = ResumeChoices(policy="skip")

    planned = plan_resume(tmp_path / "one.rdbg", hooks=hooks)
    listener = Listener(goes_live=plans.append)
    resume(tmp_path / "one.rdbg", choices=choices, output=tmp_path / "two.rdbg", hooks=hooks, listener=listener)

    (before,) = [row for row in planned.rows if row.kind == "connections"]
    (after,) = [row for row in plans[0].rows if row.kind == "connections"]
    assert before.reason == "ECONNRESET at the next call, unless the hook shop reopens it"
    assert (after.fate, after.reason) == (Fate.REOPENED, "by the hook shop")


def test_what_is_done_with_signals_is_set_again(tmp_path: Path) -> None:
    text = """import os, signal
signal.signal(signal.SIGTERM, lambda *_: print("handled"))
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.kill(os.getpid(), signal.SIGKILL)
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.raise_signal(number)
print("goes on", flush=True)
signal.raise_signal(signal.SIGINT)
"""
    record_killed(tmp_path, text)

    planned = replaydbg(tmp_path, "resume", "one.rdbg", "--plan").stdout.decode()
    resumed = replaydbg(tmp_path, "resume", "one.rdbg", _SKIP)

    assert "signals: SIGHUP (ignored), SIGINT (default action), SIGTERM (handled)\n" in planned
    assert resumed.stdout == b"handled\ngoes on\n", resumed
    assert resumed.status in (-signal.SIGINT, 128 + signal.SIGINT)


def test_a_working_directory_that_is_gone_is_a_difference(tmp_path: Path) -> None:
    text = 'import os, signal\nos.chdir("below")\nos.kill(os.getpid(), signal.SIGKILL)\n'
    (tmp_path / "below").mkdir()
    record_killed(tmp_path, text)
    (tmp_path / "below").rmdir()
    sentence = f"its working directory {tmp_path / 'below'} cannot be entered: No such file or directory"

    planned = replaydbg(tmp_path, "resume", "one.rdbg", "--plan")

    assert f"differs    {sentence}" in planned.stdout.decode()
    assert sentence in refusal(tmp_path, _SKIP)
    assert replaydbg(tmp_path, "resume", "one.rdbg", _SKIP, "--force").status == 0


def test_a_child_that_still_runs_is_named(tmp_path: Path) -> None:
    text = """import os, signal, subprocess
with open("pid", "w") as file:
    print(subprocess.Popen(["sleep", "55"]).pid, file=file)
os.kill(os.getpid(), signal.SIGKILL)
"""
    record_killed(tmp_path, text)
    child = int((tmp_path / "pid").read_text())
    try:
        planned = replaydbg(tmp_path, "resume", "one.rdbg", "--plan").stdout.decode()
    finally:
        os.kill(child, signal.SIGKILL)

    assert f"process {child} (sleep 55), which still runs: " in planned
    assert "; kill it unless both may run" in planned


def test_a_pseudoterminal_of_the_program_is_refused(tmp_path: Path) -> None:
    record_killed(tmp_path, "import os, signal\nends = os.openpty()\nos.kill(os.getpid(), signal.SIGKILL)\n")

    assert "a pseudoterminal: what was written to it and not yet read is not recorded" in refusal(tmp_path, _SKIP)


def test_a_program_that_has_ended(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import os\nos.getpid()\nopen('out', 'w').write('x')\nprint('end')\n")
    command = tool.record(sys.executable, Path("one.rdbg"), ["program.py"])
    assert run(command, cwd=tmp_path, env=without_steering(os.environ), timeout=_TIMEOUT).status == 0

    assert refusal(tmp_path) == (
        "replaydbg: Cannot resume 'one.rdbg': its program has ended: choose an earlier moment with --at."
    )


@pytest.mark.parametrize("output", ["", ".", "/", ".."])
def test_a_directory_is_not_replaced(output: str, tmp_path: Path) -> None:
    record_killed(tmp_path)

    assert refusal(tmp_path, "-o", output).endswith("it is a directory. The program was not started.")


def test_a_moment_behind_the_end(tmp_path: Path) -> None:
    record_killed(tmp_path)

    assert "No such moment '9999'" in refusal(tmp_path, "--at", "9999")
    for bad in ("0", "@exc", "job.py:7", "100.5", "71%"):
        assert (
            f"--at must be an event from 1 on, @start, @end, @t+SECONDS, or a snapshot such as @#3 (got {bad!r})"
            in (refusal(tmp_path, "--at", bad))
        )
    assert "No such moment '@t+100s': the last event was before that time" in refusal(tmp_path, "--at", "@t+100s")
    assert "No such moment '@#7': the recording has no such snapshot" in refusal(tmp_path, "--at", "@#7")


def test_two_at_once_and_a_program_that_runs(tmp_path: Path) -> None:
    waits = _KILLED.replace('file.write("two\\n")', 'open("waits", "w").close(); sys.stdin.read()')
    record_killed(tmp_path, waits)
    command = [sys.executable, "-m", "replaydbg", "resume", "one.rdbg", _SKIP, "-q", "-o", "running.rdbg"]
    with subprocess.Popen(command, cwd=tmp_path, env=without_steering(os.environ), stdin=subprocess.PIPE) as first:
        wait_until((tmp_path / "waits").exists)

        second = refusal(tmp_path, _SKIP)
        running = replaydbg(tmp_path, "resume", "running.rdbg")
        assert first.stdin is not None
        first.stdin.close()

    assert first.returncode == 3
    assert "another `replaydbg resume` of it is running" in second
    assert running.status == 2 and b"its program is still running (process " in running.stderr


def test_an_open_file_without_a_name_is_refused(tmp_path: Path) -> None:
    record_killed(tmp_path, _KILLED.replace("    file.flush()\n", "    file.flush()\n    os.unlink('out')\n"))

    assert "out: it has no name in the file system" in refusal(tmp_path, _SKIP)


def test_one_of_several_processes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import os, signal\nif os.fork():\n    os.wait()\n    os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "g.rdbg", "program.py"]
    run(command, cwd=tmp_path, env=without_steering(os.environ), timeout=_TIMEOUT)

    finished = replaydbg(tmp_path, "resume", "g.rdbgs/1.rdbg")

    assert finished.status == 2 and b"recorded together: resume the group: `replaydbg resume " in finished.stderr


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_lost_or_doubled(program: str, seed: int, tmp_path: Path) -> None:
    if reason := missing(program):
        pytest.skip(reason)
    assert one_round(seed, program, tmp_path, kills=2).events > 0
