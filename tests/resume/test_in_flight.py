"""Each call in flight has a rule; what the file system shows decides it."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from replaydbg.classes import replace
from replaydbg.errors import CannotResume
from replaydbg.gates.row import NOTED, STOPS
from replaydbg.gates.table import OWN
from replaydbg.render.resume_text import question
from replaydbg.resources.kinds import Descriptor, Handle, MakingCall, OpenedFile, OpenedPipe, Resources
from replaydbg.resume.calls.name_acts import NameState
from replaydbg.resume.calls.situation import Situation
from replaydbg.resume.conversation import CallInFlight, Settled
from replaydbg.resume.findings import CallVerdict, Finding
from replaydbg.resume.hooks import DONE, REDO, STOP, Hooks
from replaydbg.resume.in_flight import examine, has_rule
from replaydbg.resume.settle import ASK, REPEAT, SKIP, ask_hooks, call_text, settle

# Far in the past, and far in the future: whether a file counts as newer than the last event.
BEFORE, LATER = 0, 1 << 62


def call(name: str, *args: object, fd: int = -1, data: bytes = b"", **keywords: object) -> CallInFlight:
    return CallInFlight(0, "", name, False, fd, args, keywords or {}, data, len(data), "", 0, "")


def resources(cwd: Path) -> Resources:
    return Resources(5, str(cwd), (), (), (), (), (), (), (), None, (), (), (), ())


def verdict(
    each: CallInFlight,
    cwd: Path,
    last_ns: int = BEFORE,
    *,
    names: Mapping[str, NameState] | None = None,
    is_timed: bool = True,
) -> CallVerdict:
    """Return the verdict on a call that began at `last_ns`; where it `is_timed`, that is known."""
    begun = {0: last_ns} if is_timed else {}
    findings, _ = examine([each], Situation(resources(cwd), last_ns, begun_ns=begun, names=names or {}))
    return findings[0].verdict


def test_what_was_made_is_not_made_again(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "link").symlink_to("made")
    (tmp_path / "file").write_text("x")
    os.link(tmp_path / "file", tmp_path / "other")
    calls = [
        call("posix.mkdir", "made"),
        call("posix.symlink", "made", "link"),
        call("posix.link", "file", "other"),
        call("posix.rename", "gone", "file"),
        call("posix.unlink", "gone"),
        call("posix.rmdir", str(tmp_path / "gone")),
    ]

    assert [verdict(each, tmp_path) for each in calls] == [CallVerdict.DONE] * len(calls)
    assert [verdict(each, tmp_path, LATER) for each in calls] == [CallVerdict.REPEAT] * len(calls)


def test_what_may_be_of_others_is_asked_about(tmp_path: Path) -> None:
    """Of a call whose beginning is not in the log, the age of what is there shows nothing."""
    (tmp_path / "made").mkdir()
    calls = [call("posix.mkdir", "made"), call("posix.unlink", "gone")]

    assert [verdict(each, tmp_path, is_timed=False) for each in calls] == [CallVerdict.UNKNOWN] * 2
    assert [verdict(each, tmp_path, LATER, is_timed=False) for each in calls] == [CallVerdict.REPEAT] * 2


def test_what_the_program_did_itself_right_before_is_known(tmp_path: Path) -> None:
    """Time stamps do not tell these from what the call in flight did."""
    (tmp_path / "made").mkdir()
    (tmp_path / "link").symlink_to("made")
    (tmp_path / "file").touch()
    there = dict.fromkeys(("made", "link", "file"), NameState(True, 1))
    names = {str(tmp_path / "made"): NameState(False, 0), **there, str(tmp_path / "gone"): NameState(False, 1)}
    again = [
        call("posix.mkdir", "made"),
        call("posix.symlink", "made", "link"),
        call("posix.unlink", "gone"),
        call("posix.rename", "gone", "file"),
    ]

    assert [verdict(each, tmp_path, names=names) for each in again] == [CallVerdict.REPEAT] * len(again)
    assert verdict(call("posix.mkdir", "made"), tmp_path, names={"made": NameState(False, 1)}) is CallVerdict.DONE
    older = {"made": NameState(True, 1)}
    assert verdict(call("posix.mkdir", "made"), tmp_path, last_ns=2, names=older) is CallVerdict.UNKNOWN
    # A directory that the program itself has changed shows nothing of another name in it.
    assert verdict(call("posix.unlink", "other"), tmp_path, names=names) is CallVerdict.UNKNOWN
    assert verdict(call("posix.unlink", "gone"), tmp_path, names={"gone": NameState(True, 1)}) is CallVerdict.DONE


def test_arguments_by_name_count_as_well(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "made").mkdir()
    exclusive = os.O_CREAT | os.O_EXCL | os.O_WRONLY

    assert verdict(call("posix.open", "lock", flags=exclusive), tmp_path) is CallVerdict.CHANGED
    assert verdict(call("posix.open", path="lock", flags=exclusive), tmp_path) is CallVerdict.CHANGED
    assert verdict(call("posix.mkdir", path="made"), tmp_path) is CallVerdict.DONE
    assert verdict(call("posix.rename", src="gone", dst="lock"), tmp_path) is CallVerdict.DONE


def test_another_kind_of_file_was_not_made_by_the_call(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert verdict(call("posix.mkdir", "file"), tmp_path) is CallVerdict.REPEAT
    assert verdict(call("posix.mkfifo", "file"), tmp_path) is CallVerdict.REPEAT


def test_what_was_not_made_is_made(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("x")
    (tmp_path / "full" / "sub").mkdir(parents=True)
    calls = [
        call("posix.mkdir", "new"),
        call("posix.mkdir", "full"),
        call("posix.rename", "source", "target"),
        call("posix.unlink", "source"),
        call("posix.symlink", "other", "full"),
    ]

    assert [verdict(each, tmp_path) for each in calls] == [CallVerdict.REPEAT] * len(calls)


def test_an_empty_file_that_had_to_be_new_is_a_difference(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    exclusive = os.O_CREAT | os.O_EXCL | os.O_WRONLY

    assert verdict(call("posix.open", "lock", exclusive), tmp_path) is CallVerdict.CHANGED
    assert verdict(call("posix.open", "lock", exclusive), tmp_path, LATER) is CallVerdict.REPEAT
    assert verdict(call("posix.open", "lock", os.O_CREAT | os.O_WRONLY), tmp_path) is CallVerdict.REPEAT
    assert verdict(call("_io.FileIO.__init__", "lock", "x"), tmp_path) is CallVerdict.CHANGED


def test_what_is_made_once_is_looked_for(tmp_path: Path) -> None:
    """A second removal, or a second making that must be the first one, raises what the program never saw."""
    (tmp_path / "file").touch()
    path = str(tmp_path / "file")
    gone, there = (
        call("posix.removexattr", path, "user.x"),
        call("posix.setxattr", path, "user.x", b"1", os.XATTR_CREATE),
    )
    name = f"/replaydbg-{os.getpid()}-none"

    assert verdict(gone, tmp_path) is CallVerdict.DONE
    assert verdict(gone, tmp_path, LATER) is CallVerdict.REPEAT
    assert verdict(there, tmp_path) is CallVerdict.REPEAT
    assert verdict(call("posix.setxattr", path, "user.x", b"1"), tmp_path) is CallVerdict.REPEAT
    for each in ("_posixshmem.shm_unlink", "_multiprocessing.sem_unlink"):
        assert verdict(call(each, name), tmp_path) is CallVerdict.DONE
        assert verdict(call(each, name), tmp_path, LATER) is CallVerdict.REPEAT


def test_shared_memory_that_had_to_be_new_is_a_difference(tmp_path: Path) -> None:
    name = f"replaydbg-{os.getpid()}-new"
    exclusive = call("_posixshmem.shm_open", f"/{name}", os.O_CREAT | os.O_EXCL | os.O_RDWR, mode=0o600)
    try:
        assert verdict(exclusive, tmp_path) is CallVerdict.REPEAT
        Path("/dev/shm", name).touch()
        assert verdict(exclusive, tmp_path) is CallVerdict.CHANGED
        assert verdict(call("_posixshmem.shm_open", f"/{name}", os.O_RDWR), tmp_path) is CallVerdict.REPEAT
    finally:
        Path("/dev/shm", name).unlink()


def test_a_read_from_a_fifo_may_have_lost_something(tmp_path: Path) -> None:
    """The kernel has no copy of what the killed program took out of it; a read from a file reads it again."""
    os.mkfifo(tmp_path / "fifo")
    origin = MakingCall(5, 0, None)
    handle = Handle((Descriptor(5, origin, True, None),), origin, os.O_RDONLY, ())
    fifo = OpenedPipe(handle, "read", str(tmp_path / "fifo"), ())
    own = replace(resources(tmp_path), opened=(fifo,))

    def reason(each: CallInFlight) -> str:
        return examine([each], Situation(own, BEFORE))[0][0].reason

    assert (
        reason(call("posix.read", 5, 10, fd=5)) == "will be made; what the killed program may have read by it is lost"
    )
    assert reason(call("posix.read", 6, 10, fd=6)) == "making it twice does no harm"
    assert reason(call("posix.read", 0, 10, fd=0)) == "will be read from the stream of this command"


def test_what_starts_or_ends_processes_is_not_known(tmp_path: Path) -> None:
    for name in ("posix.fork", "posix.system", "posix.kill", "_posixsubprocess.fork_exec"):
        assert verdict(call(name), tmp_path) is CallVerdict.UNKNOWN


def test_every_row_of_the_gate_table_has_a_rule() -> None:
    """No call is decided by the rule for unknown ones by accident. Those of C libraries that write are meant to be."""
    ours = [row for row in OWN if row.module != "libc" and row.handler not in (STOPS, NOTED)]

    assert [row.full_name for row in ours if not has_rule(row.full_name)] == []


def of_unknown(name: str = "posix.system", data: bytes = b"") -> Finding:
    return Finding(call(name, data=data), CallVerdict.UNKNOWN, "nothing shows whether it was made")


@pytest.mark.parametrize(
    ("on_disk", "flags", "expected"),
    [
        (b"one\n", os.O_APPEND | os.O_WRONLY, CallVerdict.DONE),
        (b"", os.O_APPEND | os.O_WRONLY, CallVerdict.REPEAT),
        (b"two\n", os.O_APPEND | os.O_WRONLY, CallVerdict.CHANGED),
        (b"two\n", os.O_WRONLY, CallVerdict.REPEAT),
    ],
)
def test_a_write_at_an_offset_appends_if_the_file_is_written_at_its_end(
    tmp_path: Path, on_disk: bytes, flags: int, expected: CallVerdict
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"zero\n" + on_disk)
    making = MakingCall(1, 0, None)
    handle = Handle((Descriptor(3, making, True, None),), making, flags, ())
    opened = OpenedFile(handle, str(path), str(path), True, 5, 5, False, None)
    situation = Situation(replace(resources(tmp_path), opened=(opened,)), BEFORE)
    write = call("posix.pwrite", 3, b"one\n", 0, fd=3, data=b"one\n")

    findings, moved = examine([write], situation)

    assert findings[0].verdict is expected
    assert not moved


def test_a_call_of_which_nothing_is_known_is_decided_by_the_user() -> None:
    sent = of_unknown("_socket.socket.sendto", b"abc")

    assert settle([sent], name="r", policy=REPEAT, force=False, ask=None)[0] == [Settled(0, False)]
    assert settle([sent], name="r", policy=SKIP, force=False, ask=None)[0] == [Settled(0, True, 3)]
    assert settle([sent], name="r", policy=ASK, force=False, ask=lambda _: SKIP)[0] == [Settled(0, True, 3)]
    with pytest.raises(CannotResume, match="choose --in-flight"):
        settle([sent], name="r", policy=ASK, force=False, ask=None)
    with pytest.raises(CannotResume, match=r"no choice was made for _socket\.socket\.sendto\(\), which was in flight"):
        settle([sent], name="r", policy=ASK, force=False, ask=lambda _: "")


def test_a_call_whose_result_is_not_known_cannot_be_skipped() -> None:
    """Only choices that work are offered."""
    for policy in (ASK, SKIP):
        with pytest.raises(CannotResume) as refused:
            settle([of_unknown()], name="r", policy=policy, force=False, ask=None)
        assert "choose --in-flight=repeat" in str(refused.value) and "--in-flight=skip" not in str(refused.value)
    assert question(of_unknown()).endswith("Make it now? [r]epeat, Enter to stop: ")
    assert question(of_unknown("posix.kill")).endswith("Make it now? [r]epeat, [s]kip, Enter to stop: ")
    assert settle([of_unknown("posix.rename")], name="r", policy=SKIP, force=False, ask=None)[0] == [Settled(0, True)]


def test_a_skipped_call_does_not_count_as_done() -> None:
    _, (finding,) = settle([of_unknown("posix.kill")], name="r", policy=SKIP, force=False, ask=None)

    assert (finding.verdict, finding.reason) == (CallVerdict.SKIP, "nothing shows whether it was made")


def test_all_arguments_are_shown() -> None:
    assert call_text(call("posix.kill", 812, 9)) == "posix.kill(812, 9)"
    assert call_text(call("time.sleep", 0.5)) == "time.sleep(0.5)"
    assert call_text(call("posix.mkdir", "made", dir_fd=3)) == "posix.mkdir('made', dir_fd=3)"
    assert call_text(call("x.y", {"type": "Thing"}, b=("host", 80))) == "x.y(<Thing>, b=('host', 80))"
    assert call_text(call("x.y", *range(23))) == "x.y(0, 1, 2, 3, 4, 5, 6, 7, ...)"


def test_a_changed_file_needs_force() -> None:
    finding = Finding(call("_io.FileIO.write", data=b"x"), CallVerdict.CHANGED, "it has other content")

    with pytest.raises(CannotResume, match="it has other content"):
        settle([finding], name="r", policy=REPEAT, force=False, ask=None)
    assert settle([finding], name="r", policy=REPEAT, force=True, ask=None)[0] == [Settled(0, False)]


class _Answers:
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def settle(self, call: CallInFlight) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_hooks_decide_first() -> None:
    def asked(answer: object) -> list[Finding]:
        return ask_hooks([of_unknown()], Hooks("r", [("shop", _Answers(answer))]))

    assert asked(DONE(7))[0].value == 7
    assert asked(REDO)[0].verdict is CallVerdict.REPEAT
    assert asked(None) == [of_unknown()]
    with pytest.raises(CannotResume, match="shop refused"):
        asked(STOP)
    with pytest.raises(CannotResume, match="returned 5"):
        asked(5)
    with pytest.raises(CannotResume, match="raised KeyError"):
        asked(KeyError("x"))


def test_a_clock_is_read_again(tmp_path: Path) -> None:
    assert time.time_ns() > BEFORE
    assert verdict(call("time.time"), tmp_path) is CallVerdict.REPEAT
