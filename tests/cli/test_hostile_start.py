"""Nothing in a recording decides how its interpreter is started, and none of its paths is opened before the fence."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from replaydbg.errors import Corrupt
from replaydbg.log.header_and_end import parse_header
from tests.harness import tool
from tests.harness.build import header_json, with_header
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow

_PROGRAM = """import os, sys
import colorsys
print(sys.argv[1:], sys.path[0] != "", colorsys.rgb_to_hsv(0.5, 0.25, 0.5), flush=True)
sys.exit(7)
"""
_STATUS = 7
_LIBRARY = """#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void go(void)
{
    close(open("{canary}", O_CREAT | O_WRONLY, 0600));
}
void gconv_init(void) {}
"""
_SCRIPT = '#!/bin/sh\n: > "{canary}"\nexec "{python}" "$@"\n'
_MODULE = 'open("{canary}", "w").close()\n'


class Trap(NamedTuple):
    """A directory whose files leave a canary when they are run, and a recording made in it."""

    folder: Path
    recording: Path
    output: str

    @property
    def canary(self) -> Path:
        """The file that must not exist."""
        return self.folder / "canary"

    def changed(self, target: Path, change: Callable[[dict[str, Any]], object]) -> Path:
        """Return the recording with another header."""
        return with_header(self.recording, target, change)


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Trap:
    folder = tmp_path_factory.mktemp("trap")
    words = {"canary": str(folder / "canary"), "python": sys.executable}
    (folder / "evil.c").write_text(_LIBRARY.replace("{canary}", words["canary"]))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "evil.so", "evil.c"], cwd=folder, check=True)
    (folder / "evil.sh").write_text(_SCRIPT.format(**words))
    (folder / "evil.sh").chmod(0o755)
    module = _MODULE.format(**words)
    version = f"python3.{sys.version_info.minor}"
    for name in (
        f"lib/{version}/encodings/__init__.py",
        "linecache.py",
        "evilmodule.py",
        "sitecustomize.py",
        "site.py",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(module)
    (folder / "gconv-modules").write_text("module INTERNAL EVIL// evil 1\nmodule EVIL// INTERNAL evil 1\n")
    (folder / "C.UTF-8").mkdir()
    (folder / "C.UTF-8" / "LC_CTYPE").write_bytes(b"\0" * 64)
    work = folder / "work"
    work.mkdir()
    (work / "program.py").write_text(_PROGRAM)
    recording = folder / "good.rdbg"
    recorded = run(tool.record(sys.executable, recording, ["program.py", "a"]), cwd=work, env=_env())
    assert recorded.status == _STATUS, recorded.stderr
    return Trap(folder, recording, recorded.stdout)


def _update(name: str, new: dict[str, Any], header: dict[str, Any]) -> None:
    header[name].update(new)


def _env() -> dict[str, str]:
    return {**passed_on(), "PATH": os.defpath, "LANG": "C.UTF-8"}


def _replay(trap: Trap, path: Path, cwd: Path) -> Outcome:
    """Replay `path`, under strace if available, and assert what holds for any header."""
    ended, fenced = _watched(trap, tool.replay(sys.executable, path), cwd)
    assert len(fenced) == 1 or shutil.which("strace") is None, "the replay had no fence"
    return ended


_CALLS = (
    "execve,execveat,open,openat,openat2,seccomp,access,readlink,stat,lstat,newfstatat,chdir,clone,clone3,fork,vfork"
)


def _watched(trap: Trap, command: list[str], cwd: Path) -> tuple[Outcome, set[str]]:
    """Run a command; return also the processes that install a fence. Only those may open what the header names."""
    log = cwd / "strace.log"
    strace = shutil.which("strace")
    if strace is not None:
        command = [strace, "-f", "-qq", "-e", f"trace={_CALLS}", "-o", str(log), *command]
    ended = run(command, cwd=cwd, env=_env(), stdin=b"quit\n")
    assert not trap.canary.exists(), f"code of the recording ran: {ended}"
    return ended, _fenced(log.read_text(errors="replace"), trap.folder) if strace is not None else set()


def _fenced(log: str, folder: Path) -> set[str]:
    """Return the processes that install a fence. Their forks are behind it, too."""
    raised: set[str] = set()
    behind: set[str] = set()
    for line in log.splitlines():
        pid, call = line.split(maxsplit=1)
        executed = re.match(r'execve(?:at)?\((?:AT_FDCWD, )?"([^"]*)"', call)
        if executed is not None:
            assert os.path.samefile(executed[1], sys.executable), line  # noqa: PTH121
        if re.match(r"(seccomp\(SECCOMP_SET_MODE_FILTER|<\.\.\. seccomp resumed>).*= 0$", call):
            raised.add(pid)
            behind.add(pid)
        made = re.search(r"(?:clone3?|v?fork)(?:\(| resumed>).*= (\d+)$", call)
        if made is not None and pid in behind:
            behind.add(made[1])
        # The recording itself is read by the tool, and is named in its command line; so are sources, as texts.
        named = re.sub(r'"[^"]*(\.rdbg[^"]*|/work/program\.py)"', "", call)
        assert pid in behind or str(folder) not in named, f"before the fence: {line}"
    return raised


_REFUSED_FLAGS = [
    ["-c", "import os;os.system('id')"],
    ["-cimport os"],
    ["-m", "evilmodule"],
    ["-Bm", "evilmodule"],
    ["-V"],
    ["-h"],
    ["-"],
    ["--help"],
    ["--version"],
    ["evil.sh"],
    ["-X"],
    ["-W"],
    ["-X", "tracemalloc=1e9"],
    ["-X", "utf8=2"],
    ["--check-hash-based-pycs", "evil"],
    ["--check-hash-based-pycs"],
]


def test_a_start_that_no_program_has_is_refused(trap: Trap, tmp_path: Path) -> None:
    for number, flags in enumerate(_REFUSED_FLAGS):
        path = trap.changed(tmp_path / f"{number}.rdbg", partial(_update, "python", {"flags": flags}))

        ended = run(tool.replay(sys.executable, path), cwd=trap.folder, env=_env())

        assert (ended.status, ended.stdout) == (1, ""), (flags, ended)
        assert "cannot be replayed" in ended.stderr and ended.stderr.count("\n") == 1, (flags, ended)
    assert not trap.canary.exists()


def test_a_variable_with_which_no_python_starts_is_refused(trap: Trap, tmp_path: Path) -> None:
    for number, (name, value) in enumerate(
        [
            ("PYTHONMALLOC", "/evil.so"),
            ("PYTHONIOENCODING", "../evil"),
            ("PYTHONUTF8", "9"),
            ("PYTHONTRACEMALLOC", "-1"),
        ]
    ):
        path = trap.changed(tmp_path / f"{number}.rdbg", partial(_update, "env", {name: value}))

        ended = run(tool.replay(sys.executable, path), cwd=trap.folder, env=_env())

        assert ended.status == 1 and name in ended.stderr and ended.stderr.count("\n") == 1, ended


def _hostile_environment(folder: Path) -> dict[str, str]:
    names = (
        "PYTHONHOME",
        "PYTHONPATH",
        "PYTHONUSERBASE",
        "PYTHONPYCACHEPREFIX",
        "GCONV_PATH",
        "LOCPATH",
        "NLSPATH",
        "OPENSSL_MODULES",
    )
    files = {"PYTHONSTARTUP": "evilmodule.py", "OPENSSL_CONF": "evil.c", "LD_AUDIT": "evil.so", "BROWSER": "evil.sh"}
    return {
        **{name: str(folder) for name in names},
        **{name: str(folder / file) for name, file in files.items()},
        "LD_PRELOAD": str(folder / "evil.so"),
        "LD_LIBRARY_PATH": str(folder),
        "TZ": f":{folder}/evil.c",
        "LC_ALL": "C.UTF-8",
        "MALLOC_PERTURB_": "1",
        "GLIBC_TUNABLES": "glibc.malloc.perturb=1",
        "PYTHONWARNINGS": "error::evilmodule.Warning",
        "PYTHONEXECUTABLE": str(folder / "evil.sh"),
        "PYTHONDUMPREFSFILE": str(folder / "canary"),
        "PYTHONPERFSUPPORT": "1",
        "PYTHONPLATLIBDIR": "../../evil",
        "EVIL": "1",
    }


_FELT = ("PYTHONWARNINGS", "PYTHONPYCACHEPREFIX", "PYTHONUSERBASE")
"""Makes the interpreter's own modules request other things than in the recording."""

_FLAGS: list[list[str]] = [
    [],
    ["-i", "-x", "-v", "-X", "presite=evilmodule", "-X", "perf", "-X", "pycache_prefix={folder}", "-X", "importtime"],
    ["-W", "error::evilmodule.Evil", "-Wignore::evilmodule.A:x:1", "-W", "error::antigravity.X", "-I", "-OO", "-bb"],
    ["-E", "-q", "-u", "-d", "-X", "frozen_modules=off", "-X", "dev", "--check-hash-based-pycs", "always"],
]


@pytest.mark.parametrize("flags", _FLAGS, ids=[f"flags_{number}" for number in range(len(_FLAGS))])
def test_nothing_of_a_recording_runs_before_the_fence(trap: Trap, tmp_path: Path, flags: list[str]) -> None:
    """Every path and program that a header can name is a trap, and the replay runs in the trap's own directory."""
    hostile = [flag.format(folder=trap.folder) for flag in flags]

    def change(header: dict[str, Any]) -> None:
        header["env"] |= _hostile_environment(trap.folder)
        if not flags:  # these change the program's behaviour
            header["env"] = {k: v for k, v in header["env"].items() if k not in _FELT}
        header["python"].update(executable=str(trap.folder / "evil.sh"), prefix=str(trap.folder), flags=hostile)
        header["orig_argv"] = [str(trap.folder / "evil.sh")]
        header["cwd"] = str(trap.folder)

    path = trap.changed(tmp_path / "hostile.rdbg", change)
    (tmp_path / "linecache.py").write_text(_MODULE.format(canary=trap.canary))

    ended = _replay(trap, path, tmp_path)

    assert flags or (ended.stdout, ended.status) == (trap.output, _STATUS), ended
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: no canary was left, but which paths were opened is not known")


@pytest.mark.parametrize("version", [(3, 1), (3, 12), (3, 99)])
def test_another_python_is_not_looked_for_where_the_recording_says(
    trap: Trap, tmp_path: Path, version: tuple[int, int]
) -> None:
    number = version[0] << 24 | version[1] << 16 | 0xF1
    changes = {"hexversion": number, "executable": str(trap.folder / "evil.sh"), "version": "3.99.0"}
    path = trap.changed(tmp_path / "other.rdbg", lambda header: header["python"].update(changes))

    ended = run(tool.replay(sys.executable, path), cwd=trap.folder, env=_env() | {"PATH": f".::{os.defpath}"})

    assert ended.status == 2 and "REPLAYDBG_PYTHON" in ended.stderr, ended
    assert not trap.canary.exists()


_REPLAYING = [
    "hits REC",
    "check REC",
    "why REC sys",
    "watch REC sys",
    "log REC program.py:3 1",
    "seek REC 1",
    "debug REC",
    "heap REC",
    "bisect snapshots REC --linear",
    "diff REC 1 2",
    "export REC 1 -o out",
    "replay REC --current-source",
]
_READING = ["REC", "info REC", "info REC --env", "events REC", "verify REC", "snapshots REC", "ls"]


@pytest.mark.parametrize("command", [*_REPLAYING, *_READING])
def test_every_command_starts_it_like_that(trap: Trap, tmp_path: Path, command: str) -> None:
    def change(header: dict[str, Any]) -> None:
        header["env"] |= _hostile_environment(trap.folder)
        header["python"].update(executable=str(trap.folder / "evil.sh"), hexversion=sys.hexversion)

    path = trap.changed(tmp_path / "hostile.rdbg", change)
    files = {"REC": str(path)}
    for name in ("resource", "select", "ast"):
        (tmp_path / f"{name}.py").write_text(_MODULE.format(canary=trap.canary))

    words = [files.get(word, word) for word in command.split()]
    ended, fenced = _watched(trap, [sys.executable, "-P", "-m", "replaydbg", *words], tmp_path)

    assert ended.status != 2, ended.stderr  # every one of them is a command
    if shutil.which("strace") is not None:
        assert bool(fenced) == (command in _REPLAYING), ended


_TEXT: list[Any] = [3, [], "a\0b", "\ud800"]
_WORDS: list[Any] = ["a", [1], ["a\0"], [None], {"a": 1}]
_FIELDS: dict[str, list[Any]] = {
    "kind": [*_TEXT, "evil"],
    "target": _TEXT,
    "cwd": _TEXT,
    "path0": _TEXT,
    "tool": _TEXT,
    "argv": _WORDS,
    "orig_argv": _WORDS,
    "env": [[], {"a": 1}, {"": "x"}, {"a=b": "x"}, {"a\0": "x"}, {"a": "\0"}, {"a": "\ud83d"}],
    "hash_seed": [-1, 1 << 32, 1.5, "1", True],
    "chaos": [-1, 1 << 63, "1", []],
    "collector": [[1, 2], [1, 2, -1], [1, 2, 3, -1], [1, 2, 1 << 31], [1, 2, 3, 4, 5], ["1", "2", "3"], 5],
    "real_ids": [1, "yes"],
    "durable": [1, "yes"],
    "stdio": [["tty"], ["tty"] * 4, ["tty", "tty", "evil"], "tty", [1, 2, 3]],
    "signals": [{"0": "ignored"}, {"65": "ignored"}, {"x": "ignored"}, {"2": "\n"}, ["2"]],
    "fds": [[2], [-1], [1 << 31], [1 << 80], ["3"], [True], 3],
    "gates": [[1], [{"name": "a"}] * 2000],
    "format": [0, -1, "2", True],
}
_PYTHON_FIELDS: dict[str, list[Any]] = {
    "soabi": ["../evil", "a/b", "..", ".", "a\0", "x" * 300, 3],
    "cache_tag": ["../evil", 3],
    "hexversion": [-1, 1 << 40, "3", 1.5],
    "flags": ["-c", [3], ["a\0b"], {"-c": 1}],
    "executable": [3, "a\0b"],
    "version": [[]],
}
_WRONG_GATES: list[dict[str, Any]] = [{"name": "../x"}, {"name": 1}, {"shape": -1}, {"shape": 256}, {"kind": "\0"}]


def _pairs(fields: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    return [(name, value) for name, values in fields.items() for value in values]


@pytest.mark.parametrize(("name", "value"), _pairs(_FIELDS), ids=lambda each: repr(each)[:30])
def test_a_field_of_another_type_or_range_is_damage(name: str, value: object) -> None:
    with pytest.raises(Corrupt, match=name):
        parse_header("x.rdbg", json.dumps(header_json(**{name: value})).encode())


@pytest.mark.parametrize("row", _WRONG_GATES, ids=repr)
def test_a_gate_of_another_type_or_range_is_damage(row: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="gate table"):
        parse_header("x.rdbg", json.dumps(header_json(gates=[row])).encode())


@pytest.mark.parametrize(("name", "value"), _pairs(_PYTHON_FIELDS), ids=lambda each: repr(each)[:30])
def test_a_field_of_the_build_of_another_type_or_range_is_damage(name: str, value: object) -> None:
    header = header_json()
    header["python"][name] = value

    with pytest.raises(Corrupt, match=name):
        parse_header("x.rdbg", json.dumps(header).encode())


def test_fields_that_are_missing_end_in_a_sentence(trap: Trap, tmp_path: Path) -> None:
    names = ["kind", "target", "argv", "orig_argv", "path0", "env", "hash_seed", "stdio", "signals", "fds", "gates"]
    path = trap.changed(tmp_path / "less.rdbg", lambda header: [header.pop(name) for name in names])

    ended = _replay(trap, path, tmp_path)

    assert ended.status != 0
    assert "Traceback" not in ended.stderr
