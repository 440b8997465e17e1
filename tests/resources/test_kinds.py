"""Each kind of resource is in the table, with what the event log shows of it."""

from __future__ import annotations

import os
import select
import signal
import socket
from pathlib import Path
from typing import TypeVar

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from replaydbg.resources.follow import resources_at
from replaydbg.resources.kinds import (
    OpenedDirectory,
    OpenedEpoll,
    OpenedEventFd,
    OpenedFile,
    OpenedMemory,
    OpenedPidFd,
    OpenedPipe,
    OpenedSocket,
    OpenedTerminal,
    Resources,
    SocketState,
    Unknown,
    Watched,
)
from tests.harness.recording import record_file

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "programs" / "every_kind.py"
_Kind = TypeVar("_Kind")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kinds")


@pytest.fixture(scope="module")
def recorded(folder: Path) -> Path:
    return record_file(PROGRAM, folder)


@pytest.fixture(scope="module")
def found(recorded: Path) -> Resources:
    """The resources before the program lists its directory."""
    with open_recording(recorded) as recording:
        lists = (each for each in recording.events(gate="posix.listdir") if isinstance(each, Event))
        (mark,) = [each.number for each in lists if each.site.line == line("mark")]
        return resources_at(recording, mark - 1)


def line(text: str) -> int:
    """Return the line of the program that ends with a comment."""
    return next(at for at, each in enumerate(PROGRAM.read_text().splitlines(), 1) if each.endswith(f"# the {text}"))


def of(found: Resources, kind: type[_Kind]) -> list[_Kind]:
    """Return those of a kind."""
    return [each for each in found.opened if isinstance(each, kind)]


def named(found: Resources, name: str) -> OpenedFile:
    """Return the open file of this name."""
    (one,) = [each for each in of(found, OpenedFile) if str(each.absolute).endswith(f"/{name}")]
    return one


def test_files(found: Resources, folder: Path) -> None:
    appended, numbers = named(found, "appended.txt"), named(found, "numbers")

    assert (appended.offset, appended.is_deleted) == (11, False)
    assert isinstance(appended.handle.flags, int) and appended.handle.flags & os.O_APPEND
    assert appended.last_write is not None
    assert (appended.last_write.offset, appended.last_write.length) == (5, 6)
    assert (numbers.absolute, numbers.path, numbers.offset) == (str(folder / "numbers"), "numbers", 4)
    assert (numbers.size, numbers.is_regular) == (10, True)
    assert len(numbers.handle.numbers) == 3  # with a copy, and that of the mapping
    assert [bool(each.doubt) for each in numbers.handle.descriptors] == [False, False, True]


def test_an_append_is_where_the_file_ended(found: Resources) -> None:
    """No call of the program returns that of an unbuffered file, but the event of its opening has it."""
    log = named(found, "numbers.log")

    assert log.last_write is not None and log.last_write.length == 4
    assert (log.offset, log.size) == (4, 4)


def test_names_follow_renames_and_removals(found: Resources, folder: Path) -> None:
    assert named(found, "gone.txt").is_deleted
    assert named(found, "after.txt").path == "before.txt"
    assert named(found, "below").absolute == str(folder / "sub" / "below")
    assert found.cwd == str(folder / "sub")
    assert [each.absolute for each in of(found, OpenedDirectory)] == [str(folder / "sub")]


def test_pipes(found: Resources) -> None:
    mine = [each for each in of(found, OpenedPipe) if each.other_end]
    to_child = [each for each in of(found, OpenedPipe) if each.handle.origin.event and not each.other_end]

    assert [each.side for each in mine] == ["read", "write"]
    assert mine[0].other_end == mine[1].handle.numbers
    assert isinstance(mine[0].handle.flags, int) and mine[0].handle.flags & os.O_NONBLOCK
    assert "write" in [each.side for each in to_child]


def test_sockets(found: Resources) -> None:
    sockets = of(found, OpenedSocket)
    states = [each.state for each in sockets]
    (listening,) = [each for each in sockets if each.state is SocketState.LISTENING]
    (accepted,) = [each for each in sockets if each.is_accepted]
    (client,) = [each for each in sockets if each.peer == listening.bound]
    left, right = [each for each in sockets if each.pair is not None]
    (datagrams,) = [each for each in sockets if each.type == socket.SOCK_DGRAM]

    assert states.count(SocketState.CONNECTED) == 4
    assert (listening.backlog, listening.family) == (7, socket.AF_INET)
    assert (accepted.bound, accepted.state) == (listening.bound, SocketState.CONNECTED)
    assert [(each.level, each.option, each.value) for each in client.options] == [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ]
    assert left.pair == right.handle.numbers
    assert (datagrams.state, datagrams.family) == (SocketState.BOUND, socket.AF_UNIX)
    assert isinstance(client.is_non_blocking, Unknown)


def test_other_descriptors(found: Resources) -> None:
    (epoll,), (counter,), (me,) = of(found, OpenedEpoll), of(found, OpenedEventFd), of(found, OpenedPidFd)
    (listening,) = [each for each in of(found, OpenedSocket) if each.state is SocketState.LISTENING]
    memory = {each.is_shared_memory: each for each in of(found, OpenedMemory)}

    assert epoll.watched == (Watched(listening.handle.numbers[0], select.EPOLLIN | select.EPOLLOUT),)
    assert counter.value == 7
    assert me.pid > 0
    assert (memory[False].name, memory[False].offset, memory[False].size) == ("words", 5, 5)
    assert memory[True].size == 64
    assert [each.side for each in of(found, OpenedTerminal)] == ["master", "slave"]
    assert {str(each.path).rpartition("/")[2]: each.length for each in found.mappings}["numbers"] == 8


def test_locks(found: Resources, folder: Path) -> None:
    """Unlocking the middle of a range leaves both its ends locked."""
    shared, *ranges = found.locks

    assert (shared.kind, shared.is_exclusive, shared.path) == ("flock", False, str(folder / "sub"))
    assert [(each.kind, each.is_exclusive, each.start, each.length) for each in ranges] == [
        ("lockf", True, 2, 1),
        ("lockf", True, 5, 3),
    ]


def test_a_transaction_that_is_not_committed(found: Resources, folder: Path) -> None:
    (database,) = found.databases

    assert database.path == str(folder / "data.sqlite")
    assert (database.lock, database.transaction) == ("reserved", "write")
    assert database.files == (str(folder / "data.sqlite-journal"),)


def test_threads_with_what_they_wait_for(found: Resources) -> None:
    right = [each for each in of(found, OpenedSocket) if each.pair is not None][1]
    waiting = {each.name: (each.waits_for, each.descriptor) for each in found.threads}

    assert waiting["MainThread"] == (None, None)
    assert waiting["waits for the lock"] == ("lock", None)
    assert waiting["waits for bytes"] == ("_socket.socket.recv", right.handle.numbers[0])


@pytest.mark.parametrize("seconds", [0.002, 0.3])
def test_a_timer_that_has_fired_is_set_no_longer(seconds: float, tmp_path: Path) -> None:
    """Its signal ends a wait, in which no event shows the time."""
    (tmp_path / "program.py").write_text(
        "import os, signal, time\n"
        "def fired(*_):\n"
        "    raise TimeoutError\n"
        "signal.signal(signal.SIGALRM, fired)\n"
        "try:\n"
        f"    signal.setitimer(signal.ITIMER_REAL, {seconds})\n"
        "    time.sleep(60)\n"
        "except TimeoutError:\n"
        "    os.getppid()\n"
    )

    with open_recording(record_file(tmp_path / "program.py", tmp_path)) as recording:
        (asks,) = (each.number for each in recording.events(gate="posix.getppid") if isinstance(each, Event))

        assert resources_at(recording, asks).timers == ()


def test_a_timer_stays_set_when_the_program_sends_its_signal_to_itself(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import os, signal\n"
        "signal.signal(signal.SIGALRM, lambda *_: None)\n"
        "signal.alarm(1000)\n"
        "os.kill(os.getpid(), signal.SIGALRM)\n"
        "signal.raise_signal(signal.SIGALRM)\n"
        "os.getppid()\n"
    )

    with open_recording(record_file(tmp_path / "program.py", tmp_path)) as recording:
        (asks,) = (each.number for each in recording.events(gate="posix.getppid") if isinstance(each, Event))

        assert len(resources_at(recording, asks).timers) == 1


def test_timers_signals_and_children(found: Resources) -> None:
    (timer,) = found.timers
    actions = {each.number: each.action for each in found.signals}
    ended, running = [each for each in found.children if each.command[0] in ("sh", "sleep")]

    assert (timer.kind, timer.seconds, timer.interval) == ("real", 1000, 50)
    assert isinstance(timer.remaining, float) and 900 < timer.remaining <= 1000
    assert actions[signal.SIGUSR1] == "function" and actions[signal.SIGUSR2] == "ignore"
    assert (ended.is_reaped, ended.exit_code) == (True, 3)
    assert (running.command, running.is_reaped, running.exit_code) == (("sleep", "1000"), False, None)


def test_semaphores(found: Resources) -> None:
    (semaphore,) = found.semaphores

    assert (semaphore.kind, semaphore.value) == ("semaphore", 2)


def test_the_end_and_the_start(recorded: Path) -> None:
    with open_recording(recorded) as recording:
        start, end = resources_at(recording, 0), resources_at(recording)

    assert {0, 1, 2} <= set(start.by_number()) and not start.children
    assert all(each.handle.origin.event == 0 for each in start.opened)
    assert {each.exit_code for each in end.children if each.command[0] == "sleep"} == {-signal.SIGKILL}
    assert [each.name for each in end.threads] == ["MainThread"]
