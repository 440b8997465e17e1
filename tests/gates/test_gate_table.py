"""The gate table is complete: every function with outside input has a row, and a fixture crosses every row."""

import importlib
import os
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from replaydbg.events.records import Event
from replaydbg.gates.row import NOTED, STOPS, Row
from replaydbg.gates.table import OWN
from replaydbg.log.reader import open_recording
from tests.harness.replay_cases import FIXTURES, Case, cases
from tests.harness.replays import Scene

# Builtin functions without a row, by module: those that only compute, or have effects only in this process.
_NO_ROW = {
    "posix": """
        WCOREDUMP WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WSTOPSIG WTERMSIG _create_environ _inputhook
        _is_inputhook_installed _path_normpath _path_splitroot_ex fspath major makedev minor putenv register_at_fork
        strerror unsetenv waitstatus_to_exitcode
    """,
    # The answers of get_clock_info are the same on every Linux.
    "time": "get_clock_info strptime",
    # The answer of valid_signals depends only on the build of the C library.
    "_signal": "default_int_handler strsignal valid_signals",
    # It creates an object whose own methods are rows.
    "select": "poll",
    "_socket": """
        CMSG_LEN CMSG_SPACE getdefaulttimeout htonl htons inet_aton inet_ntoa inet_ntop inet_pton ntohl ntohs
        setdefaulttimeout
    """,
    "fcntl": "",
    "termios": "",
    "resource": "",
    "pwd": "",
    "grp": "",
}
# Rows whose handler makes no event, and why.
_NO_EVENT = {
    STOPS: "the recording ends there",
    NOTED: "it is only named",
    "profile_entries": "what the profiler has is put in order",
    "ssl_sni_callback": "the function is the program's own object; where it runs, a control record says so",
    "ssl_msg_callback": "as for server names",
    "signal_getsignal": "the handler is the program's own object",
    "imp_release_lock": "it only sees to whose turn it is next",
    "readline_hook": "the function is the program's own object; where it runs, a control record says so",
    "readline_completer": "as for hooks",
    "readline_auto_history": "it computes",
    "dt_utcnow": "it crosses as datetime.now",
}
# Rows that need something that no fixture has.
_READLINE = """
    read_history_file write_history_file append_history_file read_init_file get_line_buffer get_begidx get_endidx
    get_completion_type insert_text redisplay
"""
_ELSEWHERE = {f"readline.{name}": "a terminal, in test_terminal.py" for name in _READLINE.split()} | {
    "builtins.input": "a terminal, in test_terminal.py",
    "replaydbg.state": "a program that goes on, in resume/test_checkpoints.py",
    "replaydbg.continue": "a program of several processes, in resume/test_checkpoints.py",
}


@pytest.mark.parametrize("name", sorted(_NO_ROW))
def test_every_builtin_function_is_a_row_or_only_computes(name: str) -> None:
    module = importlib.import_module(name)
    rows = {row.name for row in OWN if row.module == name}
    functions = {key for key, value in vars(module).items() if isinstance(value, types.BuiltinFunctionType)}

    assert functions - rows - set(_NO_ROW[name].split()) == set()


@pytest.mark.parametrize("name", sorted(_NO_ROW))
def test_no_row_only_computes(name: str) -> None:
    assert {row.name for row in OWN if row.module == name} & set(_NO_ROW[name].split()) == set()


# Fixtures for travelling or inspecting cross nothing of their own, and some of them never end by themselves.
AREAS = sorted(each.name for each in FIXTURES.iterdir() if each.name not in ("travel", "heap", "bisect", "pytest"))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif("TEST_GATES" not in os.environ, reason="`tox -e gates` records every fixture for it")
def test_every_row_is_crossed_by_a_fixture() -> None:
    """Every fixture is recorded once, in every way in which it is started."""
    every = [parameter.values[0] for area in AREAS for parameter in cases(area)]

    # Two at a time: the tests share two processors.
    with ThreadPoolExecutor(2) as pool:
        crossed = set().union(*pool.map(_gates_crossed, every))

    missing = [row.full_name for row in OWN if row.full_name not in crossed and _must_be_crossed(row)]
    assert missing == []


def _must_be_crossed(row: Row) -> bool:
    # One engine serves all functions of the C library; `fixtures/cinputs` crosses those of each form. ZeroMQ is crossed
    # where it is installed, by `tox -e jupyter`.
    is_of_c_library = row.module in ("libc", "libzmq")
    return not is_of_c_library and row.handler not in _NO_EVENT and row.full_name not in _ELSEWHERE and _is_here(row)


def _is_here(row: Row) -> bool:
    """Return whether this version of Python has the function; true for rows that are not Python functions."""
    if row.handler == "native":
        return True
    try:
        found: Any = importlib.import_module(row.module)
    except ImportError:
        return False
    owner, _, name = row.name.rpartition(".")
    if owner:
        found = getattr(found, owner.removesuffix("()"), None)
        # The type of what a function creates, or that has no name in its module, exists if the module does.
        return not isinstance(found, type) or hasattr(found, name)
    return hasattr(found, name)


def _gates_crossed(case: Case) -> set[str]:
    scene = Scene.make(case.program, args=case.args, stdin=case.stdin, flags=case.flags, env=case.env, how=case.how)
    try:
        scene.record()
        assert Path(scene.recording).is_file(), f"{case.program} was not recorded"
        with open_recording(scene.recording) as recording:
            return {entry.gate for entry in recording.events() if isinstance(entry, Event)}
    finally:
        scene.remove()
