"""C code with threads of its own: a program continues after its recording has ended there, and during the recording."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow

_SOURCE = r"""
#include <Python.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int calls;

static void *call(void *function)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = PyObject_CallNoArgs(function);
    Py_XDECREF(result);
    Py_DECREF((PyObject *)function);
    PyGILState_Release(state);
    pthread_mutex_lock(&lock);
    calls++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static PyObject *call_in_thread(PyObject *self, PyObject *function)
{
    pthread_t thread;
    Py_INCREF(function);
    if (pthread_create(&thread, NULL, call, function) == 0)
        pthread_detach(thread);
    Py_RETURN_NONE;
}

static PyObject *await_calls(PyObject *self, PyObject *count)
{
    long n = PyLong_AsLong(count);
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&lock);
    while (calls < n)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"call_in_thread", call_in_thread, METH_O, NULL}, {"await_calls", await_calls, METH_O, NULL}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, NAME, NULL, -1, methods};
PyMODINIT_FUNC INIT(void) { return PyModule_Create(&module); }
"""

# A thread of the program waits in C for what a thread of the C library does, and that calls Python.
_WAITS_IN_C = """
import threading, time
met = threading.Event()
waiter = threading.Thread(target=c.await_calls, args=(2,))
waiter.start()
c.call_in_thread(met.set)
met.wait()
c.call_in_thread(lambda: print("called", flush=True))
waiter.join()
results = []
others = [threading.Thread(target=results.append, args=(n,), name=f"thread {n}") for n in range(5)]
for each in others: each.start()
for each in others: each.join()
print("ended", sorted(results), threading.active_count(), flush=True)
"""

# Its thread began before the recording ended: it goes on as it was.
_COMPUTES = """
import threading
is_done = False
def computes():
    while not is_done:
        max(range(50))
threading.Thread(target=computes).start()
"""

_TRACED_IN_C = """
import sys
met = threading.Event()
events = []
def one():
    return 1
def is_traced():
    sys.settrace(lambda frame, event, argument: events.append(frame.f_code.co_name))
    one()
    sys.settrace(None)
    met.set()
c.call_in_thread(is_traced)
print(met.wait(20), events, flush=True)
"""

# The main thread waits in the interpreter; nothing blocks in C.
_WAITS_IN_PYTHON = """
import threading
met = threading.Event()
c.call_in_thread(met.set)
print(met.wait(20), flush=True)
"""


def test_a_program_goes_on_when_its_recording_has_ended_at_a_library_with_threads(tmp_path: Path) -> None:
    _compile(tmp_path / "grpc" / "_cython", "cygrpc")
    for package in ("grpc", "grpc/_cython"):
        (tmp_path / package / "__init__.py").touch()

    recorded, replayed = _run_both(tmp_path, "import grpc._cython.cygrpc as c\n" + _WAITS_IN_C)

    assert "unsupported: gRPC" in recorded.stderr
    assert "the recording ends here" in replayed.stderr


def test_threads_that_run_already_go_on_too(tmp_path: Path) -> None:
    _compile(tmp_path / "grpc" / "_cython", "cygrpc")
    for package in ("grpc", "grpc/_cython"):
        (tmp_path / package / "__init__.py").touch()
    before = (
        "import threading\nmay_end = threading.Event()\nearly = threading.Thread(target=may_end.wait)\nearly.start()\n"
    )

    recorded, _ = _run_both(
        tmp_path,
        before + "import grpc._cython.cygrpc as c\n" + _WAITS_IN_C + "may_end.set()\nearly.join()\nprint('early')\n",
    )

    assert "unsupported: gRPC" in recorded.stderr


def test_a_thread_of_c_code_calls_python_while_the_program_waits(tmp_path: Path) -> None:
    _compile(tmp_path, "own_threads")

    recorded, _ = _run_both(tmp_path, "import own_threads as c\n" + _WAITS_IN_PYTHON)

    assert recorded.stdout == "True\n"


def test_a_thread_of_c_code_is_traced_beside_one_that_computes(tmp_path: Path) -> None:
    _compile(tmp_path / "grpc" / "_cython", "cygrpc")
    for package in ("grpc", "grpc/_cython"):
        (tmp_path / package / "__init__.py").touch()

    recorded, _ = _run_both(
        tmp_path, _COMPUTES + "import grpc._cython.cygrpc as c\n" + _TRACED_IN_C + "is_done = True\n"
    )

    assert recorded.stdout.startswith("True ['one'")


def _compile(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{name}.c"
    source.write_text(_SOURCE)
    include = sysconfig.get_paths()["include"]
    target = folder / (name + str(sysconfig.get_config_var("EXT_SUFFIX")))
    names = [f'-DNAME="{name}"', f"-DINIT=PyInit_{name}"]
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-pthread", *names, f"-I{include}", str(source), "-o", str(target)], check=True
    )


def _run_both(folder: Path, program: str) -> tuple[Outcome, Outcome]:
    """Return the recorded run, which must equal the plain one, and its replay, which must end."""
    (folder / "program.py").write_text(program)
    env = {**passed_on(), "PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    plain = run([sys.executable, "program.py"], cwd=folder, env=env)
    command = [part for part in tool.record(sys.executable, folder / "r.rdbg", ["program.py"]) if part != "-q"]

    recorded = run(command, cwd=folder, env=env, timeout=20)
    replayed = run([sys.executable, "-m", "replaydbg", "replay", "r.rdbg"], cwd=folder, env=env, timeout=20)

    assert (recorded.stdout, recorded.status) == (plain.stdout, plain.status), recorded.stderr
    return recorded, replayed
