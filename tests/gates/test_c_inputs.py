"""Inputs that C code takes by itself are recorded and replayed: otherwise a replay would be silently wrong."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from replaydbg.gates.table import OWN
from tests.harness import tool
from tests.harness.replay_cases import FIXTURES, Case, cases
from tests.harness.sanitizer import IS_SANITIZED

pytestmark = pytest.mark.slow

_WAYS: tuple[str, ...] = ("by_library", "by_name", "by_pointer", "by_number", "by_instruction")
if not IS_SANITIZED:  # AddressSanitizer's allocator gives the blocks: their addresses differ
    _WAYS += ("address_and_thread",)
_PROGRAM = f"""
import ctypes, socket, sys

c = ctypes.CDLL(sys.argv[1])
for name in {_WAYS}:
    getattr(c, name).restype = ctypes.c_ulonglong
x = [getattr(c, name)() for name in {_WAYS}]
c.nanoseconds.restype = ctypes.c_longlong
x += [c.nanoseconds(clock) for clock in range(8)]
x += [c.readings_until_it_moves(), c.process(), c.processors()]
one, other = socket.socketpair()
room = ctypes.create_string_buffer(64)
x += [c.give_message(one.fileno(), b"over a socket"), c.take_message(other.fileno(), room, 64), room.value]
one.close()
other.close()
print("done")
if "shown" in sys.argv:
    print(x)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A C library that takes inputs in every way."""
    made = tmp_path_factory.mktemp("library") / "libtakes.so"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    source = FIXTURES / "cinputs" / "_takes.c"
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl", "-lpthread"], check=True)
    return made


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=os.environ)


def _record(tmp_path: Path, program: str, *args: str) -> Path:
    (tmp_path / "program.py").write_text(program)
    recording = tmp_path / "r.rdbg"
    done = _run(tool.record(sys.executable, recording, [str(tmp_path / "program.py"), *args]))
    assert done.returncode == 0, done.stderr
    (tmp_path / "recorded.txt").write_text(done.stdout)
    return recording


@pytest.mark.parametrize("case", cases("cinputs"))
def test_calls_of_the_c_library_replay(case: Case) -> None:
    case.check()


def test_every_way_to_take_an_input_replays(library: Path, tmp_path: Path) -> None:
    recording = _record(tmp_path, _PROGRAM, str(library), "shown")

    replayed = [_run(tool.replay(sys.executable, recording)) for _ in range(2)]

    recorded = (tmp_path / "recorded.txt").read_text()
    assert [(0, recorded)] * 2 == [(each.returncode, each.stdout) for each in replayed], replayed[0].stderr


def test_two_questions_about_one_recording_get_one_answer(library: Path, tmp_path: Path) -> None:
    """The program prints nothing of it, so equal output proves nothing."""
    recording = _record(tmp_path, _PROGRAM, str(library))
    question = [sys.executable, "-m", "replaydbg", "debug", "--batch", "-q", "-c", "p x", str(recording)]

    answers = [_run(question) for _ in range(2)]

    assert "over a socket" in answers[0].stdout
    assert answers[0].stdout == answers[1].stdout


_MODULE = """
#include <Python.h>
#include <sys/random.h>
#include <unistd.h>

/* As OpenSSL does before it draws: whether the process is a copy of another. */
static PyObject *drawn(PyObject *self, PyObject *unused)
{
    unsigned number = 0;
    long before = getpid();
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return PyErr_SetFromErrno(PyExc_OSError);
    return Py_BuildValue("lIl", before, number, (long)getpid());
}

static PyMethodDef methods[] = {{"drawn", drawn, METH_NOARGS, NULL}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_draws", NULL, -1, methods};
PyMODINIT_FUNC PyInit__draws(void) { return PyModule_Create(&module); }
"""


def test_an_extension_module_finds_the_recorded_process_in_the_debugger(tmp_path: Path) -> None:
    """Processes of the debugger have other ids, and replay the same events."""
    (tmp_path / "_draws.c").write_text(_MODULE)
    compiler = [*(sysconfig.get_config_var("CC") or "cc").split(), "-I", sysconfig.get_paths()["include"]]
    made = tmp_path / f"_draws{sysconfig.get_config_var('EXT_SUFFIX')}"
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", made, tmp_path / "_draws.c"], check=True)
    recording = _record(tmp_path, "import _draws\nx = _draws.drawn()\nprint(x)\n")
    recorded = (tmp_path / "recorded.txt").read_text()

    asked = _run([sys.executable, "-m", "replaydbg", "debug", "--batch", "-q", "-c", "p x", str(recording)])

    assert recorded in asked.stdout, asked.stderr


def test_each_call_is_an_event_by_its_name(library: Path, tmp_path: Path) -> None:
    recording = _record(tmp_path, _PROGRAM, str(library))

    listed = _run([sys.executable, "-m", "replaydbg", "events", str(recording)])

    # By its name, by dlsym(), by a pointer, by its number and by an instruction.
    draws = sum("libc.getrandom(8, 0)" in line for line in listed.stdout.splitlines())
    assert draws == 5
    assert "libc.recv(" in listed.stdout


def test_an_act_of_a_library_is_not_repeated(tmp_path: Path) -> None:
    made = tmp_path / "made"
    act = f"libc.mkdir({os.fsencode(made)!r}, 0o700), libc.getpriority(0, 0)"
    act = f"import ctypes; libc = ctypes.CDLL(None); print({act})"
    recording = _record(tmp_path, act)
    made.rmdir()

    replayed = _run(tool.replay(sys.executable, recording))

    assert (replayed.returncode, replayed.stdout) == (0, (tmp_path / "recorded.txt").read_text())
    assert not made.exists()


def test_what_cannot_be_repeated_is_named(tmp_path: Path) -> None:
    recording = _record(tmp_path, 'import ctypes; libc = ctypes.CDLL(None); libc.fopen(b"/proc/uptime", b"r")')

    info = _run([sys.executable, "-m", "replaydbg", "info", str(recording)])

    assert "fopen() called by C code" in info.stdout


def test_a_loop_that_waits_for_the_clock_ends(tmp_path: Path) -> None:
    """`_testsinglephase` waits in C until the interpreter's clock moves (3.13)."""
    pytest.importorskip("_testsinglephase", reason="this build of Python has no test modules")
    recording = _record(tmp_path, "import _testsinglephase; print(_testsinglephase.__name__)")

    replayed = _run(tool.replay(sys.executable, recording))

    assert (replayed.returncode, replayed.stdout) == (0, "_testsinglephase\n")


def test_the_table_of_the_core_and_the_gates_agree() -> None:
    native = FIXTURES.parent / "replaydbg" / "native"
    source = (native / "libc" / "rows.c").read_text() + (native / "lanes" / "thread_calls.c").read_text()
    source += (native / "libc" / "libc.c").read_text()

    unknown = [row.name for row in OWN if row.module == "libc" and row.name.removesuffix("64") not in source]

    assert unknown == []
