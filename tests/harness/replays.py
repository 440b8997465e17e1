"""The central check of the suite: `assert_replays(program)` records, changes the world, replays, and compares.

What the program took from outside is changed or deleted between the two: its working directory with its input files
and its sources, the temporary directory, the environment, the time zone, the process's working directory, its standard
input.
Compared are stdout, stderr, the exit code or signal, and the plain data among the program's final globals, which the
copied program prints at its exit without knowing it (`tests.harness.replay_places`).
"""

import difflib
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.harness import tool
from tests.harness.replay_places import Form, lay_out
from tests.harness.sanitizer import SLOWER, runtime

# Timeout in seconds for any one run of a fixture; none needs a tenth of it on an idle machine.
TIMEOUT = 60.0
# The tests' own settings that must reach the programs, besides a sanitizer: the allocator of the tox environment.
_PASSED_ON = ("PYTHONMALLOC", "COVERAGE_PROCESS_START")
# A sanitizer's message when a program requests more memory than there is; with the process id.
_SANITIZER = re.compile(r"^==\d+==WARNING: AddressSanitizer failed to allocate .*\n", re.MULTILINE)
_OTHER_STDIN = b"something else lies on the standard input\n"


@dataclass(frozen=True, slots=True)
class How:
    """The rarer options of a run."""

    form: Form = Form.SCRIPT
    # "pipe", "file", "closed", "open pipe" (nobody writes, nobody closes).
    # None: a pipe if there is text, else /dev/null.
    stdin_is: str | None = None
    # Its output does not depend on the outside: recorded, it must be the same as unrecorded.
    is_steady: bool = False
    # Whether `big.txt`, of 3 MB, is in the working directory.
    has_big_file: bool = False
    # A pattern: its matches in the outputs are not compared. For what differs between two runs of the program (process
    # ids): a replay writes the same bytes as the recording, and checks them itself.
    mask: str | None = None
    # Names of signals that are ignored when the program starts.
    ignored_signals: tuple[str, ...] = ()
    # A pattern: lines that begin with a match were printed by children, which do not run in a replay.
    child_lines: str | None = None
    # Timeout of the replay in seconds.
    replay_within: float | None = None
    # The recording ends before the program does (exec): the replay repeats the beginning.
    is_cut_short: bool = False
    # "record", "replay" or "both": where the core allocates at random (`orders_of_tests` in `replaydbg.config`). If
    # empty, the variable TEST_PERTURB of the tests' own environment decides.
    perturb: str | None = None
    # The collector's state must be equal at each event. Not where only the outcome of a crossing is known to.
    is_strict: bool = True
    # The mean slice of a lane in ticks, for many more switches than usual; None: the default.
    slice: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a run."""

    stdout: str
    stderr: str
    # Exit code; 128 + number for a signal, as in a shell.
    status: int
    # Seconds.
    wall: float

    def without_globals(self) -> "Outcome":
        """The same without the report of the final globals."""
        stderr = "".join(line for line in self.stderr.splitlines(keepends=True) if not line.startswith("globals: "))
        return replace(self, stderr=stderr)


def assert_replays(
    program: Path,
    *,
    args: Sequence[str] = (),
    stdin: str | None = None,
    flags: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    status: int | None = None,
    how: How | None = None,
    keeps_failed: bool = True,
    replays: int = 1,
    timeout: float = TIMEOUT,
) -> None:
    """Record `program`, replay it in a changed world, and assert that both ended equal.

    `status` is the exit code that the recorded run must have (minus the number of a signal); None: any. The recording
    is kept if an assertion fails, and the failure names the command that replays it; unless the failure is expected. It
    is replayed `replays` times, and each must be equal. No run may take longer than `timeout` seconds.
    """
    scene = Scene.make(program, args=args, stdin=stdin, flags=flags, env=env or {}, how=how or How())
    try:
        replace(scene, timeout=timeout).check(status, replays=replays)
        keeps_failed = False
    finally:
        if not keeps_failed:
            scene.remove()


@dataclass(frozen=True, slots=True)
class Scene:
    """The directories and command lines of one recording and its replay."""

    # Contains all below; removed at the end if nothing failed.
    base: Path
    program: Path
    args: tuple[str, ...]
    stdin: str | None
    flags: tuple[str, ...]
    env: Mapping[str, str]
    how: How
    # Seed of the random allocations.
    seed: int
    # The command line of the tool.
    python: str = sys.executable
    # Seconds for any one run.
    timeout: float = TIMEOUT

    @classmethod
    def make(
        cls,
        program: Path,
        *,
        args: Sequence[str] = (),
        stdin: str | None = None,
        flags: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        how: How | None = None,
    ) -> "Scene":
        """Return a scene in a fresh temporary directory."""
        base = Path(tempfile.mkdtemp(prefix=f"replaydbg-{program.stem}-")).resolve()
        seed = random.randrange(1, 1 << 32)
        return cls(base, program, tuple(args), stdin, tuple(flags), env or {}, how or How(), seed)

    @property
    def recording(self) -> Path:
        """The path of the recording."""
        return self.base / "recording.rdbg"

    @property
    def work(self) -> Path:
        """The working directory of the recorded program."""
        return self.base / "work"

    def check(self, status: int | None, *, replays: int = 1) -> None:
        """Run everything and compare."""
        plain = self.run_plainly() if self.how.is_steady else None
        recorded = self.record()
        if status is not None:
            self._equal("exit code of the recorded run", str(_as_shell(status)), str(recorded.status), recorded)
        if plain is not None:
            # The globals may hold times and process ids.
            self._same("recording changed the program", plain.without_globals(), recorded.without_globals())
        for _ in range(replays):
            self._compare_a_replay(recorded)

    def _compare_a_replay(self, recorded: Outcome) -> None:
        replayed = self.replay()
        if self.how.is_cut_short:
            assert recorded.stdout.startswith(replayed.stdout), self._explain("the beginning differs", replayed)
            assert replayed.status != tool.DIVERGED, self._explain("the replay diverged", replayed)
            return
        self._same("the replay differs from the recording", recorded, replayed)
        limit = self.how.replay_within
        assert limit is None or replayed.wall < limit * SLOWER, self._explain(
            f"the replay took {replayed.wall:.2f} s", replayed
        )

    def run_plainly(self) -> Outcome:
        """Run the program without the tool."""
        command = self._lay_out()
        return self._run(command if self._is_console else [sys.executable, *command])

    def record(self) -> Outcome:
        """Record the program in a fresh working directory."""
        return self._run(tool.record(self.python, self.recording, self._lay_out()), self._orders("record", 1))

    def replay(self) -> Outcome:
        """Delete the program's inputs, change the rest, and replay."""
        for name in ("work", "tmp", "home"):
            shutil.rmtree(self.base / name, ignore_errors=True)
        elsewhere = self.base / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        (elsewhere / "input.txt").write_text("another file of the same name\n")
        return run(
            tool.replay(self.python, self.recording),
            cwd=elsewhere,
            env=self._changed_env() | self._orders("replay", 2),
            stdin=_OTHER_STDIN,
            timeout=self.timeout,
        )

    def remove(self) -> None:
        """Remove the directories; called when nothing failed."""
        shutil.rmtree(self.base, ignore_errors=True)

    @property
    def _is_console(self) -> bool:
        return self.how.form is Form.CONSOLE

    def _lay_out(self) -> list[str]:
        for path in (self.work, self.base / "tmp", self.base / "home"):
            shutil.rmtree(path, ignore_errors=True)
        start = lay_out(self.program, self.how.form, self.work, has_big_file=self.how.has_big_file)
        (self.base / "tmp").mkdir()
        (self.base / "home").mkdir()
        return [*self.flags, *start, *self.args]

    def _orders(self, run: str, factor: int) -> dict[str, str]:
        where = self.how.perturb or os.environ.get("TEST_PERTURB")
        perturb = {"REPLAYDBG_TEST_PERTURB": str(self.seed * factor)} if where in (run, "both") else {}
        sliced = {"REPLAYDBG_TEST_SLICE": str(self.how.slice)} if self.how.slice and run == "record" else {}
        return ({"REPLAYDBG_TEST_STRICT": "1"} if self.how.is_strict else {}) | perturb | sliced

    def _run(self, command: Sequence[str], orders: Mapping[str, str] | None = None) -> Outcome:
        text = None if self.stdin is None else self.stdin.encode()
        return run(
            command,
            cwd=self.work,
            env=self._env() | dict(orders or {}),
            stdin=text,
            stdin_is=self.how.stdin_is,
            ignored_signals=self.how.ignored_signals,
            timeout=self.timeout,
        )

    def _env(self) -> dict[str, str]:
        path = os.environ.get("PATH", os.defpath)
        return {
            **passed_on(),
            "PATH": f"{self.work}/bin:{path}" if self._is_console else path,
            "HOME": str(self.base / "home"),
            "TMPDIR": str(self.base / "tmp"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "USER": "recorder",
            "XDG_DATA_HOME": str(self.base / "data"),
            **self.env,
        }

    def _changed_env(self) -> dict[str, str]:
        return {
            **passed_on(),
            "PATH": os.defpath,
            "HOME": "/nonexistent/elsewhere",
            "LC_ALL": "POSIX",
            "TZ": "Pacific/Kiritimati",
            "LOGNAME": "somebody-else",
            "COLUMNS": "41",
            "FIXTURE_ONLY_IN_REPLAY": "1",
            "XDG_DATA_HOME": str(self.base / "data"),
        }

    def _same(self, what: str, expected: Outcome, actual: Outcome) -> None:
        self._equal(f"{what}: stdout", self.comparable(expected.stdout), self.comparable(actual.stdout), actual)
        self._equal(f"{what}: stderr", self.comparable(expected.stderr), self.comparable(actual.stderr), actual)
        self._equal(f"{what}: exit code", str(expected.status), str(actual.status), actual)

    def comparable(self, text: str) -> str:
        """Return `text` without parts that may differ between the two."""
        if self.how.child_lines is not None:
            lines = text.splitlines(keepends=True)
            text = "".join(line for line in lines if not re.match(self.how.child_lines, line))
        text = _SANITIZER.sub("", text)
        return text if self.how.mask is None else re.sub(self.how.mask, "(masked)", text)

    def _equal(self, what: str, expected: str, actual: str, outcome: Outcome) -> None:
        if expected != actual:
            difference = difflib.unified_diff(
                expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm="", n=1
            )
            text = "\n".join(line[:600] for line in list(difference)[:60])
            raise AssertionError(self._explain(f"{what}\n{text}", outcome))

    def _explain(self, what: str, outcome: Outcome) -> str:
        orders = [f"{name}={value}" for name, value in self._orders("replay", 2).items()]
        replay = shlex.join([*orders, *tool.replay(sys.executable, self.recording)])
        return f"{what}\nstderr ended with: {outcome.stderr[-1500:]}\nkept: {self.base}\nreplay it: {replay}"


def passed_on() -> dict[str, str]:
    """The variables of the tests' own environment that every program gets."""
    return runtime() | {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes | None = None,
    stdin_is: str | None = None,
    ignored_signals: Sequence[str] = (),
    timeout: float = TIMEOUT,
) -> Outcome:
    """Run `command` to its end in a session of its own; after `timeout` seconds the session is killed."""
    if stdin_is == "closed":
        command = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    for name in ignored_signals:
        command = ["sh", "-c", f"trap '' {name.removeprefix('SIG')}; exec \"$@\"", "sh", *command]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source, keep_open = _open_stdin(stdin, stdin_is)
        started = time.monotonic()
        try:
            process = subprocess.Popen(
                command, cwd=cwd, env=dict(env), stdin=source, stdout=out, stderr=err, start_new_session=True
            )
            os.close(source)
            status = _wait(process, timeout)
        finally:
            if keep_open is not None:
                os.close(keep_open)
        wall = time.monotonic() - started
        out.seek(0)
        err.seek(0)
        return Outcome(_text(out.read()), _text(err.read()), _as_shell(status), wall)


def _wait(process: "subprocess.Popen[bytes]", timeout: float) -> int:
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _open_stdin(text: bytes | None, kind: str | None) -> tuple[int, int | None]:
    """Return a descriptor to read from, and one that the caller closes when the run has ended.

    Texts are shorter than a pipe's buffer, so that no thread has to feed it.
    """
    if text is None and kind != "open pipe":
        return os.open(os.devnull, os.O_RDONLY), None
    if kind == "file":
        reading = os.memfd_create("stdin")
        os.write(reading, text or b"")
        os.lseek(reading, 0, os.SEEK_SET)
        return reading, None
    reading, writing = os.pipe()
    os.set_inheritable(writing, False)
    if kind == "open pipe":
        return reading, writing
    os.write(writing, text or b"")
    os.close(writing)
    return reading, None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _as_shell(status: int) -> int:
    return 128 - status if status < 0 else status
