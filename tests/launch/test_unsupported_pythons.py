"""An unsupported interpreter gets one sentence and exit code 1, from `record` and from an installer.

The decision depends on `sys`, so most tests fake its values. Those that the machine has (a debug build, a free-threaded
one, an older version) are run for real.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.errors import WrongPython
from replaydbg.log.coding.codec import FORMAT
from replaydbg.replay.launcher import replay
from tests.harness.build import Example, header_json
from tests.harness.replays import Outcome, passed_on, run

ROOT = Path(__file__).parents[2]

_KINDS = {
    "free-threaded": ("sys.abiflags = 't'", "it is a free-threaded build"),
    "debug": ("sys.abiflags = 'd'", "it is a debug build"),
    "newer": ("sys.version_info = (3, 15, 0, 'final', 0)", "3.15 is newer than 3.14"),
    "of another collector": (
        "sys.version_info = (3, 14, 4, 'final', 0)",
        "3.14.4 has an incremental garbage collector",
    ),
    "older": ("sys.version_info = (3, 10, 13, 'final', 0)", "3.10 is older than 3.11"),
    "other": ("sys.implementation.name = 'pypy'", "it is pypy"),
    "elsewhere": ("sys.platform = 'darwin'", "it runs on darwin"),
    "musl": ("sys.implementation._multiarch = 'x86_64-linux-musl'", "its C library is musl (as on Alpine Linux)"),
}


@pytest.mark.parametrize("kind", _KINDS)
def test_record_refuses_in_one_sentence(kind: str, tmp_path: Path) -> None:
    pretence, reason = _KINDS[kind]
    (tmp_path / "prog.py").write_text("print('it ran')\n")
    imports = "import sys, replaydbg.cli.running.record as _; from replaydbg.cli.main import main"
    code = f"{imports}; {pretence}; sys.exit(main())"

    refused = _run(sys.executable, "-c", code, "record", "-o", "r.rdbg", "prog.py", cwd=tmp_path)

    assert (refused.status, refused.stdout) == (1, "")
    assert refused.stderr.startswith(f"replaydbg: Cannot record or replay with {sys.executable!r}: {reason}")
    assert refused.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["prog.py"]


@pytest.mark.parametrize("command", ["dist_info", "build_ext"])
def test_an_installation_refuses_before_it_compiles(command: str, tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    shutil.copy(ROOT / "setup.py", tmp_path)
    (tmp_path / "replaydbg" / "native").mkdir(parents=True)
    # The faked value affects only setup.py: setuptools and sysconfig, too, depend on `sys`.
    supported = (ROOT / "replaydbg" / "native" / "supported.py").read_text()
    supported += "WANTED = 'another one'\ndef why_unsupported():\n    return 'it is a strange build'\n"
    (tmp_path / "replaydbg" / "native" / "supported.py").write_text(supported)

    refused = _run(sys.executable, "setup.py", command, cwd=tmp_path)

    assert refused.status == 1
    said = f"error: replaydbg cannot be built for {sys.executable!r}: it is a strange build. Use another one."
    assert refused.stderr.splitlines()[-1] == said


def test_a_python_that_cannot_even_read_our_source_is_told_so(tmp_path: Path) -> None:
    code = (
        "import runpy, sys; sys.version_info = (3, 6, 15, 'final', 0); sys.version = '3.6.15 (default)';"
        "runpy.run_module('replaydbg', run_name='__main__')"
    )

    refused = _run(sys.executable, "-c", code, "ls", cwd=tmp_path)

    assert (refused.status, refused.stdout) == (1, "")
    assert refused.stderr == "replaydbg: Python 3.6.15 is too old: replaydbg needs 3.11 or newer.\n"


def test_windows_is_told_what_to_use(tmp_path: Path) -> None:
    code = "import runpy, sys; sys.platform = 'win32'; runpy.run_module('replaydbg', run_name='__main__')"

    refused = _run(sys.executable, "-c", code, "ls", cwd=tmp_path)

    assert (refused.status, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
    assert "Windows Subsystem for Linux" in refused.stderr


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("python3.13t", "it is a free-threaded build"),
        ("python3.13d", "it is a debug build"),
        ("python3.11-dbg", "it is a debug build"),
        ("python3.15", "3.15 is newer than 3.14"),
        ("python3.10", "is too old"),
        ("python3.8", "is too old"),
        ("python2.7", "is too old"),
        ("pypy3", ""),
    ],
)
def test_such_an_interpreter_itself_says_it(name: str, reason: str, tmp_path: Path) -> None:
    python = shutil.which(name)
    # pyenv leaves a command for every version that any Python has, which ends with 127.
    if python is None or subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"this machine has no {name}")
    (tmp_path / "prog.py").write_text("print('it ran')\n")

    refused = _run(python, "-m", "replaydbg", "record", "prog.py", cwd=tmp_path, PYTHONPATH=str(ROOT))

    assert (refused.status, refused.stdout) == (1, "")
    assert refused.stderr.startswith("replaydbg: ") and refused.stderr.count("\n") == 1
    assert reason in refused.stderr


def test_a_replay_takes_no_other_build_of_the_same_version(tmp_path: Path) -> None:
    """At the path of the recorded interpreter there is a free-threaded one of the same version now."""
    impostor = tmp_path / "python"
    impostor.write_text(f'#!/bin/sh\necho "{sys.hexversion} .cpython-313t-x86_64-linux-gnu.so"\n')
    impostor.chmod(0o755)
    version = sys.version.split()[0]
    python = {
        "version": version,
        "hexversion": sys.hexversion,
        "executable": str(impostor),
        "prefix": "/usr",
        "cache_tag": "cpython",
        "soabi": "cpython-of-another-build",
        "flags": [],
    }
    recording = Example(header=header_json(format=FORMAT, python=python)).write(tmp_path)

    with pytest.raises(WrongPython, match=rf"cannot be replayed with {version} \(another build of it, cpython-"):
        replay(recording)


def _run(*command: str, cwd: Path, **env: str) -> Outcome:
    home = {"HOME": str(cwd), "PATH": os.environ.get("PATH", os.defpath), "PYTHONDONTWRITEBYTECODE": "1"}
    return run(command, cwd=cwd, env={**passed_on(), **home, **env})
