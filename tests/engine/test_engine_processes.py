"""The processes of a session: the effects of killing one, and that none remains when the session ends."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.engine.reports import EndReport
from replaydbg.engine.travel import Travel
from replaydbg.errors import AskFailed, Cancelled, EngineLost
from tests.harness.recording import record_file
from tests.harness.waiting import PATIENCE, wait_until, wait_until_busy

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "waits_for_a_lock.py"
SPACING = 0.004
MARK = "REPLAYDBG_TEST_ENGINE_MARK"

# It sleeps at its end to be there when it is killed.
DEBUGGER = """
import os, sys, time
from pathlib import Path
from replaydbg.debugger import Session
from replaydbg.debugger.session_results import WorkProgress

def progress(told):
    if told.what == "replaying" and sys.argv[2] == "first pass":
        print("ready", flush=True)

session = Session(Path(sys.argv[1]), spacing=0.004, progress=progress)
session.seek("30%")
print("ready", flush=True)
if sys.argv[2] == "crash":
    raise ValueError
if sys.argv[2] == "evaluation":
    session.ask.evaluate("while 1: pass", seconds=60)
time.sleep(60)
"""


def of_session(keeper: int) -> list[int]:
    """Return the living processes of the keeper's session, which is one of its own."""
    return [pid for pid in all_processes() if _session_of(pid) == keeper]


def all_processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def own_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _session_of(pid: int) -> int:
    try:
        state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except OSError:
        return 0
    return int(session) if state not in "ZX" else 0


def marked(mark: str) -> list[int]:
    """Return the living processes of the keeper whose debugger had `mark` in its environment, and that one."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for pid in all_processes():
        try:
            if wanted in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found + [each for pid in found for each in of_session(pid)]


@contextlib.contextmanager
def when_busy(keeper: int, act: Callable[[], None]) -> Iterator[None]:
    """Call `act` in another thread as soon as a process of the keeper's session computes."""

    def wait_and_act() -> None:
        wait_until_busy(lambda: of_session(keeper))
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    try:
        yield
    finally:
        thread.join()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(PROGRAM, tmp_path_factory.mktemp("processes"))


@pytest.fixture
def session(recording: Path) -> Iterator[Session]:
    with Session(recording, spacing=SPACING) as opened:
        opened.seek("40%")
        yield opened


def keeper_of(session: Session) -> int:
    pid = session.cursor.pid
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill(*pids: int) -> None:
    for pid in pids:
        # One may have ended by itself since it was listed.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(_session_of(pid) for pid in pids))


# ---- none remains ----


def test_closing_ends_all(recording: Path) -> None:
    session = Session(recording, spacing=SPACING)
    keeper = keeper_of(session)
    assert len(of_session(keeper)) > 3
    session.close()
    wait_until(lambda: not of_session(keeper))
    session.close()
    with pytest.raises(EngineLost):
        session.seek(3)


def debugger(recording: Path, what: str, mark: str, terminal: int | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", DEBUGGER, str(recording), what],
        env=os.environ | {MARK: mark},
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@pytest.mark.parametrize("what", ["standing", "first pass", "evaluation", "crash"])
def test_nothing_stays_when_the_debugger_is_killed_or_crashes(recording: Path, what: str) -> None:
    mark = f"{os.getpid()}-{what}"
    process = debugger(recording, what, mark)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"ready\n"
        if what == "evaluation":
            wait_until_busy(lambda: marked(mark))
        if what != "crash":
            process.kill()
        process.wait(30)
    wait_until(lambda: not marked(mark), message=lambda: marked(mark))


@pytest.mark.parametrize("what", ["standing", "first pass", "evaluation"])
def test_nothing_stays_after_ctrl_c_at_a_terminal(recording: Path, what: str) -> None:
    mark = f"{os.getpid()}-terminal-{what}"
    pid, terminal = pty.fork()
    if pid == 0:
        arguments = [sys.executable, "-c", DEBUGGER, str(recording), what]
        os.execve(sys.executable, arguments, os.environ | {MARK: mark})
    try:
        while b"ready" not in os.read(terminal, 1000):
            pass
        if what == "evaluation":
            wait_until_busy(lambda: marked(mark))
        os.write(terminal, b"\x03")
        wait_until(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid)
    finally:
        os.close(terminal)
    wait_until(lambda: not marked(mark), message=lambda: marked(mark))


def test_an_evaluation_that_is_given_up_leaves_no_process(session: Session) -> None:
    keeper = keeper_of(session)
    before = len(of_session(keeper))

    def give_up(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    handler = signal.signal(signal.SIGALRM, give_up)
    try:
        with when_busy(keeper, lambda: os.kill(os.getpid(), signal.SIGALRM)), pytest.raises(KeyboardInterrupt):
            session.ask.evaluate("while 1: pass", seconds=600)
    finally:
        signal.signal(signal.SIGALRM, handler)
    wait_until(lambda: len(of_session(keeper)) <= before)
    assert session.ask.evaluate("1 + 1").error is None


@pytest.mark.parametrize("does", ["evaluate", "change"])
def test_what_runs_at_a_moment_can_be_cancelled(session: Session, does: str) -> None:
    keeper = keeper_of(session)
    before = len(of_session(keeper))
    with when_busy(keeper, session.work.cancel), pytest.raises(Cancelled):
        (session.ask.evaluate if does == "evaluate" else session.change)("while 1: pass")
    wait_until(lambda: len(of_session(keeper)) <= before)
    assert session.ask.evaluate("1 + 1").error is None
    assert not session.here.is_changed


# ---- one is killed ----


def test_a_killed_cursor_is_replaced(session: Session) -> None:
    count = session.here.count
    kill(session.cursor.pid)
    assert session.ask.variables()
    kill(session.cursor.pid)
    session.step()
    session.reverse_step()
    assert session.here.count == count


def test_killed_checkpoints_are_made_again(session: Session) -> None:
    keeper, number = keeper_of(session), len(session.checkpoints())
    where = session.seek("50%")
    kill(*(pid for pid in of_session(keeper) if pid not in (keeper, session.cursor.pid)))
    assert session.seek("60%").count > where.count
    assert session.seek("50%").stack == where.stack
    session.seek("99%")
    assert len(session.checkpoints()) >= number // 3
    assert session.run.why("value").function == "<module>"


def test_a_killed_keeper_is_replaced(session: Session) -> None:
    where = session.seek("50%")
    keeper = keeper_of(session)
    kill(keeper)
    wait_until(lambda: not of_session(keeper))
    assert session.seek("70%").count > where.count
    assert session.seek("50%").stack == where.stack
    assert keeper_of(session) != keeper


def test_a_process_killed_in_the_first_pass_is_told_in_a_sentence(
    recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_pass = Travel.first_pass

    def killed(travel: Travel) -> EndReport:
        os.kill(travel.root.pid, signal.SIGKILL)
        return first_pass(travel)

    monkeypatch.setattr(Travel, "first_pass", killed)
    with pytest.raises(EngineLost, match="was lost: it has ended"):
        Session(recording)


def test_descriptors_do_not_leak(session: Session) -> None:
    for turn in range(30):  # the maximum number that stays close behind the cursor
        session.seek(1 + turn * session.index.total // 30)
    before, keeper = own_descriptors(), keeper_of(session)
    processes = len(of_session(keeper))
    for turn in range(200):
        session.seek(1 + turn * 7919 % session.index.total)
        if turn % 10 == 0:
            session.ask.variables()
    assert abs(own_descriptors() - before) < 20
    wait_until(lambda: len(of_session(keeper)) < processes + 20)


@pytest.mark.parametrize("has_descriptors", [True, False])
def test_the_number_of_one_that_has_ended_may_be_another_ones(
    session: Session, monkeypatch: pytest.MonkeyPatch, has_descriptors: bool
) -> None:
    if not has_descriptors:
        monkeypatch.delattr(os, "pidfd_open")
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with other:
        ended, closed, standing = (session.travel.at(each) for each in (30, 40, 50))
        kill(ended.pid)
        closed.close()
        for worker in (ended, closed):
            worker.pid = other.pid
            worker.kill()
        standing.kill()
        wait_until(lambda: not _session_of(standing.pid))
        standing.kill()
        other.communicate(b"\n", timeout=PATIENCE)
        assert other.returncode == 0


# ---- effects in a copy of the program stay there ----

CONTAINED = {
    "__import__('os')._exit(3)": "it ended the process",
    "import _ctypes as c; c.call_function(c.dlsym(c.dlopen(None, 2), 'exit'), (3,))": "it ended the process",
    "import faulthandler; faulthandler._sigsegv()": "signal 11",
    "while 1: pass": "longer than 0.5 s",
    "sum(range(10**12))": "longer than 0.5 s",
    "import threading; threading.Thread(target=print).start()": "a thread is started here",
    "lock.acquire()": "wait for another thread",
    "holder.join()": "wait for another thread",
}

ANSWERED = {
    "'x' * 10**11": "MemoryError",
    "parts = []\nwhile 1: parts.append('x' * 10_000_000)": "MemoryError",
    "(lambda f: f(f))(lambda f: f(f))": "RecursionError",
    "input()": "is not available in the past",
    "raise SystemExit(3)": "SystemExit",
    "import os; os.fork()": "is not available in the past",
    "open('/tmp/there-is-no-such-file', 'w')": "is not available in the past",
}


@pytest.mark.parametrize("source", CONTAINED)
def test_an_evaluation_that_ends_its_process_is_contained(session: Session, source: str) -> None:
    count = session.here.count
    with pytest.raises(AskFailed, match=CONTAINED[source]):
        session.ask.evaluate(source, seconds=0.5)
    assert session.here.count == count
    assert session.ask.evaluate("1 + 1").error is None
    assert session.step().count == count + 1


@pytest.mark.parametrize("source", ANSWERED)
def test_an_evaluation_that_raises_says_so(session: Session, source: str) -> None:
    assert ANSWERED[source] in (session.ask.evaluate(source).error or "")
    assert session.ask.evaluate("1 + 1").error is None


def test_what_an_evaluation_prints_is_its_own(session: Session) -> None:
    assert session.ask.evaluate("print('here')").output == "here\n"
    session.seek("@last")
    assert b"".join(each.data for each in session.run.output()) == b"half 4999950000\ndone 4999950000\n"
