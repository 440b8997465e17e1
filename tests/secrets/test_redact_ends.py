"""A redacted copy ends in its replay as the original does; if the end depends on a secret, the line is named."""

from __future__ import annotations

import json
import zlib
from contextlib import ExitStack
from pathlib import Path

import pytest

from replaydbg.errors import CannotRedact
from replaydbg.log.reader import open_recording
from replaydbg.redaction.redigesting import tell_output
from replaydbg.redaction.same_end import ReplayedEnd, check_same_end
from replaydbg.redaction.told import NOTHING_RAISED, ToldEnd, ToldPlace
from replaydbg.replay.result import ReplayResult
from replaydbg.secrets.pseudonyms import Pseudonyms
from tests.harness.children import completed
from tests.harness.replays import Outcome
from tests.secrets.test_keys import Person

pytestmark = pytest.mark.slow

TOKEN = "hunter2hunter2"
NUMBER = zlib.crc32(TOKEN.encode())
BEGIN = f"""\
import ctypes, os, resource, signal, sys, threading, time, zlib
number = zlib.crc32(os.environ["MY_TOKEN"].encode())
is_original = number == {NUMBER}
libc = ctypes.CDLL(None)
me = os.getpid()
"""
LINE = 6
"""The number of a program's first line behind BEGIN."""

CHOICES = 40


def on_lines(call: str) -> str:
    """Return a program that makes a call, on a line that depends on the secret."""
    return "[\n" + f"    lambda: {call},\n" * CHOICES + f"][number % {CHOICES}]()\n"


DEPENDING = {
    "kill": "os.kill(me, signal.SIGRTMIN + number % 29)\n",
    "kill on a line": on_lines("os.kill(me, signal.SIGTERM)"),
    "kill or another call": "os.kill(me, signal.SIGTERM) if is_original else time.sleep(1)\n",
    "kill or nothing": "if is_original: os.kill(me, signal.SIGTERM)\n",
    "nothing or kill": "if not is_original: os.kill(me, signal.SIGTERM)\n",
    "raise of C code": "getattr(libc, 'raise')(signal.SIGRTMIN + number % 29)\n",
    "crash": "if is_original: ctypes.string_at(0)\n",
    "crash of the copy": "if not is_original: ctypes.string_at(0)\n",
    "crash on a line": on_lines("ctypes.string_at(0)"),
    "crash or kill": "if is_original: ctypes.string_at(0)\nos.kill(me, signal.SIGSEGV)\n",
    "abort or exit": "if is_original: os.abort()\nos._exit(1)\n",
    "abort of C code on a line": on_lines("libc.abort()"),
    "exec": "os.execv('/bin/true', ['true', str(number)])\n",
    "exec of a path": "os.execv('/bin/true' if is_original else '/bin/echo', ['echo'])\n",
    "a thread in a call": """\
threading.Thread(target=lambda: time.sleep(100000 + number), daemon=True).start()
os._exit(0)
""",
    "a thread in a call as the interpreter ends": """\
threading.Thread(target=lambda: time.sleep(100000 + number), daemon=True).start()
time.sleep(0.001)
""",
    "a timer": """\
signal.setitimer(signal.ITIMER_VIRTUAL, 0.1)
while is_original: pass
time.sleep(number)
""",
    "the type of an exception": """\
sys.excepthook = lambda *exception: None
raise (ValueError if is_original else KeyError)(1)
""",
    "a class of its own": """\
sys.excepthook = lambda *exception: None
raise type(f"Failure{number}", (Exception,), {})(1)
""",
    "the module of a class": """\
sys.excepthook = lambda *exception: None
raise type("Failure", (Exception,), {"__module__": f"shop{number}"})(1)
""",
    "an exception or none": "sys.excepthook = lambda *exception: os._exit(0)\nif is_original: raise KeyError\n",
    "an exception in a thread": """\
threading.excepthook = lambda args: None
def work():
    raise (ValueError if is_original else KeyError)(1)
thread = threading.Thread(target=work)
thread.start()
thread.join()
""",
    "an exception in a thread or none": """\
threading.excepthook = lambda args: None
def work():
    1 // (not is_original)
thread = threading.Thread(target=work)
thread.start()
thread.join()
""",
    "exit": "sys.exit(number % 251)\n",
    "exit of the interpreter": "raise SystemExit(number % 251)\n",
}
SAME = {
    "kill": "os.kill(me, signal.SIGTERM)\n",
    "kill for good": "os.kill(me, signal.SIGKILL)\n",
    "raise of C code": "getattr(libc, 'raise')(signal.SIGUSR1)\n",
    "crash": "ctypes.string_at(0)\n",
    "abort": "os.abort()\n",
    "exec": "os.execv('/bin/true', ['true', os.environ['MY_TOKEN']])\n",
    "a thread in a call": """\
threading.Thread(target=lambda: os.read(os.pipe()[0], 100), daemon=True).start()
threading.Thread(target=lambda: time.sleep(100000), daemon=True).start()
os._exit(3)
""",
    "a timer": "signal.setitimer(signal.ITIMER_VIRTUAL, 0.1)\nwhile True: pass\n",
    "an exception": "raise RuntimeError(os.environ['MY_TOKEN'])\n",
    "an exception in a thread": """\
def work():
    raise KeyError(os.environ["MY_TOKEN"])
thread = threading.Thread(target=work)
thread.start()
thread.join()
""",
    "an exception whose text is made by the program": """\
sys.excepthook = lambda *exception: None
class Failure(Exception):
    def __str__(self):
        return str(number)
raise Failure
""",
    "an exception with a long text": """\
sys.excepthook = lambda *exception: None
raise KeyError("x" * 3995 + os.environ["MY_TOKEN"])
""",
    "exit": "sys.exit(3)\n",
}


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path / "one")


def recorded(person: Person, source: str) -> Path:
    (person.place / "prog.py").write_text(BEGIN + source)
    words = ("record", "-q", "--children=none", "-o", "r", "prog.py")
    person.do(*words, MY_TOKEN=TOKEN)
    return person.place / "r.rdbg"


def refused(person: Person, original: Path) -> Outcome:
    """Redact until it is refused: a pseudonym may happen to have the same end as the secret."""
    for number in range(3):
        done = person.do("redact", original, "-o", f"copy-{number}")
        if done.status == 2:
            return done
    raise AssertionError(done)


def end_of(person: Person, path: Path | str) -> tuple[int, int, bool, int | None]:
    """Replay a recording; return exit code, events, whether it came to the program's end, and the program's status."""
    done = person.do("replay", "--json", path)
    result = json.loads(done.stdout)
    return done.status, result["events"], result["is_whole"], result["status"]


@pytest.mark.parametrize("kind", DEPENDING)
def test_an_end_that_depends_on_a_secret_is_refused_with_its_line(kind: str, person: Person) -> None:
    done = refused(person, recorded(person, DEPENDING[kind]))

    assert "Cannot redact 'r': its run depends on the value of a secret: " in done.stderr, done
    lines = range(LINE, LINE + BEGIN.count("\n") + DEPENDING[kind].count("\n"))
    assert any(f'prog.py", line {line}' in done.stderr for line in lines), done
    assert not list(person.place.glob(".replaydbg-*"))


@pytest.mark.parametrize("kind", SAME)
def test_the_copy_ends_as_the_original(kind: str, person: Person) -> None:
    original = recorded(person, SAME[kind])

    done = person.do("redact", original, "-o", "copy.rdbg")

    assert done.status == 0, done
    assert end_of(person, "copy.rdbg") == end_of(person, original)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def work():\n    raise RuntimeError('checksum %012d' % number)\nwork()\n", LINE + 1),
        ("def work():\n    print('%012d' % number, flush=True)\nwork()\n", LINE + 1),
    ],
    ids=["traceback", "print"],
)
def test_output_that_depends_on_a_secret_has_its_line(source: str, line: int, person: Person) -> None:
    done = refused(person, recorded(person, source))

    assert "what it writes depends on the value of a secret" in done.stderr
    assert f'prog.py", line {line}' in done.stderr, done


@pytest.mark.parametrize("hook", ["sys.excepthook", "threading.excepthook"])
def test_the_text_of_an_exception_that_depends_on_a_secret_is_refused(hook: str, person: Person) -> None:
    """It need not be printed; as of what is printed, --derived accepts another text of the same length."""
    raising = "def work():\n    raise RuntimeError('checksum %012d' % number)\n"
    start = "work()\n" if hook.startswith("sys.") else "t = threading.Thread(target=work)\nt.start()\nt.join()\n"
    original = recorded(person, f"{hook} = lambda *args: None\n{raising}{start}")

    done = refused(person, original)
    derived = person.do("redact", "--derived", original, "-o", "derived")

    assert "the text of an exception depends on the value of a secret (--derived accepts that)" in done.stderr
    assert f'prog.py", line {LINE + 2}' in done.stderr, done
    assert derived.status == 0, derived


@pytest.mark.parametrize("words", [("prog.py",), ("-m", "prog")], ids=["script", "module"])
def test_the_type_of_an_exception_has_a_line(words: tuple[str, ...], person: Person) -> None:
    source = "sys.excepthook = lambda *args: None\nraise (ValueError if is_original else KeyError)(1)\n"
    (person.place / "prog.py").write_text(BEGIN + source)
    person.do("record", "-q", "--children=none", "-o", "r", *words, MY_TOKEN=TOKEN)

    done = refused(person, person.place / "r.rdbg")

    assert "at its end, the copy would end with KeyError" in done.stderr, done
    assert f'prog.py", line {LINE + 1}' in done.stderr, done


@pytest.mark.parametrize(
    "words",
    [("prog.py",), ("-m", "prog"), ("-c", f"{BEGIN}sys.exit(number % 251)")],
    ids=["script", "module", "command"],
)
def test_an_exit_code_has_a_line(words: tuple[str, ...], person: Person) -> None:
    (person.place / "prog.py").write_text(f"{BEGIN}sys.exit(number % 251)\n")
    person.do("record", "-q", "--children=none", "-o", "r", *words, MY_TOKEN=TOKEN)

    done = refused(person, person.place / "r.rdbg")

    assert "it ended with status " in done.stderr
    assert "line " in done.stderr and "()" not in done.stderr, done


def ended(how: str = "end", *, line: int = 3, status: int = -9, is_told: bool = True) -> ReplayedEnd:
    end = ToldEnd(8, how, 0, (ToldPlace("prog.py", line, "work"),), NOTHING_RAISED, ())
    return ReplayedEnd(ReplayResult(status, None, 7, "signal 9 ended the program"), end if is_told else None)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (ended(), ended(), True),
        (ended(), ended(line=4), False),
        (ended("computing"), ended("computing", line=4), True),
        (ended("computing"), ended(), False),
        (ended(is_told=False), ended(is_told=False), True),
        (ended(is_told=False), ended(is_told=False, status=-11), False),
        (ended(), ended(is_told=False), False),
        (ended(is_told=False), ended(), False),
    ],
)
def test_ends_are_compared(one: ReplayedEnd, other: ReplayedEnd, is_same: bool) -> None:
    if is_same:
        check_same_end(one, other, "r")
        return
    with pytest.raises(CannotRedact, match="depends on the value of a secret: at its end, the copy would"):
        check_same_end(one, other, "r")


def test_a_replay_that_cannot_tell_its_end_proves_nothing(person: Person) -> None:
    (person.place / "prog.py").write_text("import os\nos._exit(0)\n")
    person.do("record", "-q", "--children=none", "-o", "r", "prog.py")
    with (
        ExitStack() as stack,
        open_recording(person.place / "r.rdbg") as recording,
        pytest.raises(OSError, match="No space left on device"),
    ):
        full = stack.enter_context(open("/dev/full", "r+b", buffering=0))  # noqa: PTH123 - a device
        tell_output(recording, "r", full, Pseudonyms({}))


FORK = """\
if os.fork() == 0:
    os.kill(os.getpid(), {signal})
os.wait()
"""


def recorded_group(person: Person, source: str) -> Path:
    (person.place / "prog.py").write_text(BEGIN + source)
    person.do("record", "-q", "-o", "r", "prog.py", MY_TOKEN=TOKEN)
    completed(person.place / "r.rdbgs")
    return person.place / "r.rdbgs"


def test_an_end_of_a_process_that_depends_on_a_secret_refuses_the_group(person: Person) -> None:
    original = recorded_group(person, FORK.format(signal="signal.SIGRTMIN + number % 29"))

    done = refused(person, original)

    assert "Cannot redact 'r/2': its run depends on the value of a secret: " in done.stderr
    assert f'prog.py", line {LINE + 1}' in done.stderr


def test_the_processes_of_a_copied_group_end_as_those_of_the_original(person: Person) -> None:
    original = recorded_group(person, FORK.format(signal="signal.SIGTERM"))

    done = person.do("redact", original, "-o", "copy")

    assert done.status == 0, done
    ends = [
        [
            (each["error"], each["replay"])
            for each in json.loads(person.do("replay", "--json", path).stdout)["processes"]
        ]
        for path in (original, person.place / "copy.rdbgs")
    ]
    assert ends[0] == ends[1]
