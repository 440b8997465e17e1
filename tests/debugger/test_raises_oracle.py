"""The index has every exception of a run, thread by thread, as a plain trace of the same program lists them.

The trace is made without the tool (tests/debugger/raise_tracer.py). `TEST_RAISES` is how many programs are drawn.
"""

import json
import os
import subprocess
import sys
import sysconfig
from collections import defaultdict
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from tests.harness.recording import record_file
from tests.harness.surroundings import without_steering
from tests.harness.typed import Typed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TRACER = Path(__file__).with_name("raise_tracer.py")
PROGRAM = Path(__file__).parents[2] / "fixtures" / "raises" / "kinds_of_raising.py"
PROGRAMS = int(os.environ.get("TEST_RAISES", "3"))

Listed = dict[str, list[tuple[str, int, str, bool]]]


def traced(folder: Path, *argv: str) -> Listed:
    out = folder / "traced.json"
    command = [sys.executable, str(TRACER), str(out), str(PROGRAM), *argv]
    subprocess.run(command, check=True, timeout=300, stdout=subprocess.DEVNULL, env=without_steering(os.environ))
    return {name: [(*each,) for each in found] for name, found in json.loads(out.read_text()).items()}


def indexed(session: Session) -> Listed:
    """Return the exceptions of the program's own file by the names of threads, which their first exceptions contain."""
    lanes: Listed = defaultdict(list)
    names: dict[int, str] = {}
    for each in session.index.raised:
        if each.file == str(PROGRAM):
            name = names.setdefault(each.lane, each.message)
            lanes[name].append((each.type.rpartition(".")[2], each.line, each.function, each.is_again))
    return dict(lanes)


@pytest.mark.parametrize("seed", range(1, PROGRAMS + 1))
def test_every_exception_is_there(seed: int, tmp_path: Path) -> None:
    # The last number: iterations of a loop between the threads, more than a slice of ticks.
    argv = (str(seed), "150", "1200000" if seed == 1 else "0")
    expected = traced(tmp_path, *argv)

    with Session(record_file(PROGRAM, tmp_path, *argv, timeout=120)) as session:
        found = indexed(session)

    assert sum(map(len, expected.values())) > 2000
    assert found.keys() == expected.keys()
    for name, listed in expected.items():
        assert found[name] == listed, name


C_CODE = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
static PyObject *
fail(PyObject *self, PyObject *unused)
{
    PyCodeObject *code = PyCode_NewEmpty("lib.pyx", "lib.fail", 12);
    PyObject *globals = PyDict_New(), *type, *value, *traceback;
    PyErr_SetString(PyExc_ValueError, "from C code");
    PyErr_Fetch(&type, &value, &traceback);
    PyFrameObject *frame = PyFrame_New(PyThreadState_Get(), code, globals, NULL);
    PyErr_Restore(type, value, traceback);
    PyTraceBack_Here(frame);
    Py_DECREF(frame);
    Py_DECREF(code);
    Py_DECREF(globals);
    return NULL;
}
static PyMethodDef methods[] = {{"fail", fail, METH_NOARGS, NULL}, {NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "fails_in_c", NULL, -1, methods};
PyMODINIT_FUNC PyInit_fails_in_c(void) { return PyModule_Create(&definition); }
"""
OF_C_CODE = """\
import fails_in_c
def use():
    fails_in_c.fail()
for _ in range(3):
    try:
        use()
    except ValueError:
        pass
use()
"""


def test_a_frame_that_never_ran_hides_no_exception(tmp_path: Path) -> None:
    """Cython puts such frames into tracebacks, to name its own lines."""
    source = tmp_path / "fails_in_c.c"
    source.write_text(C_CODE)
    target = tmp_path / f"fails_in_c{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run(["gcc", "-shared", "-fPIC", include, str(source), "-o", str(target)], check=True)
    program = tmp_path / "uses_c.py"
    program.write_text(OF_C_CODE)

    with Session(record_file(program, tmp_path, status=1)) as session:
        own = [each for each in session.index.raised if each.file == str(program)]

        assert [(each.type, each.line, each.is_again) for each in own] == 4 * [("ValueError", 3, False)]
        assert session.failure is not None
        assert session.failure.count == own[-1].count
        assert Typed(session)("exceptions").count("uses_c.py:3 use") == 4


MANY = """\
import sys
n = int(sys.argv[1])
for i in range(n):
    try:
        raise ValueError("number %d of very many that are raised here" % i)
    except ValueError:
        pass
raise KeyError("the last one")
"""


def test_of_too_many_the_first_and_the_last_are_kept_and_the_others_counted(tmp_path: Path) -> None:
    number = 450_000
    program = tmp_path / "many.py"
    program.write_text(MANY)

    with Session(record_file(program, tmp_path, str(number), status=1, timeout=200)) as session:
        own = [each for each in session.index.raised if each.file == str(program)]
        left_out = session.index.left_out

        assert left_out is not None
        assert len(own) + left_out.number == number + 1
        assert own[0].message == "number 0 of very many that are raised here"
        assert own[-1].is_uncaught
        assert own[-2].message == f"number {number - 1} of very many that are raised here"
        assert session.failure is not None
        assert session.failure.message == "the last one"
        numbers = [int(each.message.split()[1]) for each in own[:-1]]
        missing = next(at for at, each in enumerate(numbers) if at != each)
        assert numbers == [*range(missing), *range(missing + left_out.number, number)]
        assert f"{left_out.number:,} between " in Typed(session)("exceptions 1")
