"""A recording of another Python gets one sentence with its version and the command to run, and exit code 2."""

import sys
from pathlib import Path

import pytest

from replaydbg.log.coding.codec import FORMAT
from tests.harness.build import Example, header_json
from tests.harness.process import Finished
from tests.resume.going_on import run_in

_COMMANDS = (["replay"], ["resume", "--plan"], ["resume", "--force"])
_SOABI = "cpython-312-of-nowhere"
_READING = "Reading it (info, events, verify) works with any supported Python."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a recording of Python 3.12.99."""
    python = {
        "version": "3.12.99",
        "hexversion": 0x030C63F0,
        "executable": "/nowhere/python3.12",
        "prefix": "/nowhere",
        "cache_tag": "cpython-312",
        "soabi": _SOABI,
        "flags": [],
    }
    Example(header=header_json(format=FORMAT, python=python)).write(tmp_path).rename(tmp_path / "one.rdbg")
    return tmp_path


def test_that_of_another_processor_is_named_with_it(tmp_path: Path) -> None:
    python = {**header_json()["python"], "soabi": "cpython-311-riscv64-linux-gnu"}
    Example(header=header_json(format=FORMAT, python=python)).write(tmp_path).rename(tmp_path / "one.rdbg")

    refused = _run(tmp_path, [], ["replay"])

    wanted = f"{python['version']} for riscv64-linux-gnu"
    assert (refused.status, refused.stdout) == (2, b"")
    assert f"was recorded with Python {wanted} and cannot be replayed" in refused.stderr.decode()
    assert f"install replaydbg in a Python {wanted}, and run" in refused.stderr.decode()


@pytest.mark.parametrize("command", _COMMANDS, ids=" ".join)
def test_one_for_which_there_is_no_core(command: list[str], folder: Path) -> None:
    python = folder / "python3.12"
    python.write_text(f'#!/bin/sh\necho "{0x030C63F0} .{_SOABI}.so"\n')
    python.chmod(0o755)

    refused = _run(folder, [f"REPLAYDBG_PYTHON={python}"], command)

    how = f"run `{python} -m replaydbg` instead (if it has no replaydbg, install it there first)"
    _assert_refused(refused, how)


@pytest.mark.parametrize("command", _COMMANDS, ids=" ".join)
def test_one_that_is_not_installed(command: list[str], folder: Path) -> None:
    how = "install replaydbg in a Python 3.12.99, and run that one's `python -m replaydbg`"
    _assert_refused(_run(folder, [], command), how)


def _run(folder: Path, variables: list[str], command: list[str]) -> Finished:
    return run_in(folder, ["env", *variables, sys.executable, "-m", "replaydbg", *command, "one.rdbg"])


def _assert_refused(refused: Finished, how: str) -> None:
    own = sys.version.split()[0]
    sentence = f"'one.rdbg' was recorded with Python 3.12.99 and cannot be replayed with {own}: {how}. {_READING}\n"
    assert (refused.status, refused.stdout) == (2, b"")
    assert refused.stderr.decode() == f"replaydbg: {sentence}"
