"""A replay touches nothing outside itself: checked in the kernel by strace, and by the files around it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.replay_cases import FIXTURES, cases_of
from tests.harness.replays import TIMEOUT, Scene, passed_on, run

pytestmark = pytest.mark.slow

_PROGRAMS = (
    "clocks/logging_records.py",
    "entropy/temporary_names.py",
    "files/descriptor_calls.py",
    "files/directory_work.py",
    "files/large_write.py",
    "files/memory_map.py",
    "files/shutil_functions.py",
    "imports/bytecode_caches.py",
    "imports/module_made_and_deleted.py",
    "processes/fork_and_wait.py",
    "processes/run_captured.py",
    "processes/signals_to_children.py",
    "processes/system_and_popen.py",
    "signals/calls_of_the_module.py",
    "sqlite/database_file.py",
    "startup/standard_streams.py",
)
# Calls that put bytes somewhere; allowed into the standard streams, memory files and the tool's own pipes.
_WRITES = {
    *("write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "copy_file_range", "splice", "vmsplice"),
    *("ftruncate", "fallocate", "fchmod", "fchown", "fsetxattr", "futimesat"),
}
_OPENS = {"open", "openat", "openat2", "creat"}
# Calls that change the world whatever their arguments are.
_FORBIDDEN = {
    *("connect", "bind", "listen", "sendto", "sendmsg", "sendmmsg", "socket", "accept", "accept4"),
    *("unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "mknod", "mknodat"),
    *("link", "linkat", "symlink", "symlinkat", "truncate", "chmod", "fchmodat", "fchmodat2", "chown", "lchown"),
    *("fchownat", "utime", "utimes", "utimensat", "setxattr", "lsetxattr", "removexattr", "mount", "umount2", "chroot"),
    *("io_uring_setup", "ptrace", "setpriority", "sethostname", "reboot"),
}
_CALL = re.compile(r"^(?P<pid>\d+)\s+(?P<name>\w+)\((?P<args>.*)$")
_WRITING_FLAGS = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE")
_FAILED = re.compile(r"= -1 E\w+ ")


@dataclass(frozen=True, slots=True)
class _Limits:
    """The permitted actions of a replay."""

    # Files that are its standard streams.
    streams: tuple[str, ...]
    interpreter: Path
    # The processes of the replay, which may signal each other.
    pids: frozenset[str]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("name", _PROGRAMS)
def test_the_kernel_sees_no_act_of_a_replay(name: str, tmp_path: Path) -> None:
    scene = _recorded(name)
    # The first replay may compile the tool's own modules; the second is inspected.
    first = scene.replay()

    trace = _strace(tool.replay(sys.executable, scene.recording), tmp_path)

    acts = list(_acts(trace, tmp_path))
    assert not acts, f"{scene.recording} did:\n" + "\n".join(acts[:30])
    assert (tmp_path / "out").read_text(errors="backslashreplace") == first.stdout
    scene.remove()


@pytest.mark.parametrize("name", _PROGRAMS)
def test_the_files_around_a_replay_stay_as_they_are(name: str) -> None:
    """The files are again as before the recording: the replay could change them, and must not."""
    scene = _recorded(name)
    scene.run_plainly()
    before = _picture(scene.base)

    replay = run(tool.replay(sys.executable, scene.recording), cwd=scene.work, env={**passed_on(), "PATH": os.defpath})

    assert replay.status != tool.DIVERGED, replay.stderr
    assert _picture(scene.base) == before
    scene.remove()


def _recorded(name: str) -> Scene:
    case = next(cases_of(FIXTURES / name))
    scene = Scene.make(case.program, args=case.args, stdin=case.stdin, flags=case.flags, env=case.env, how=case.how)
    recorded = scene.record()
    assert recorded.status == case.status, recorded.stderr
    return scene


def _strace(command: list[str], folder: Path) -> list[str]:
    """Return the lines of the trace of `command`; descriptors are shown with their files."""
    # Without a HOME the interpreter itself, at its start, asks the system's name service for one, through a socket.
    env = {**passed_on(), "PATH": os.defpath, "HOME": str(folder)}
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        subprocess.run(
            ["strace", "-f", "-y", "-s", "0", "-o", str(folder / "trace"), *command],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            timeout=TIMEOUT,
            check=False,
        )
    return (folder / "trace").read_text(errors="backslashreplace").splitlines()


def _acts(trace: list[str], folder: Path) -> Iterator[str]:
    """Return the lines of the trace that affect the outside."""
    calls = [match for line in trace if (match := _CALL.match(line))]
    limits = _Limits(
        streams=(str(folder / "out"), str(folder / "err"), "/dev/null"),
        interpreter=Path(sys.executable).resolve(),
        pids=frozenset(match["pid"] for match in calls),
    )
    assert len(calls) > 100, "strace saw nothing"
    return (match.string for match in calls if _is_act(match, limits))


def _is_act(call: "re.Match[str]", limits: _Limits) -> bool:
    name, args = call["name"], call["args"]
    if name in _FORBIDDEN:
        return True
    if name in _WRITES:
        return not _is_own(_target(name, args), limits)
    if name in _OPENS:
        if "O_CREAT" not in args and "O_TRUNC" not in args and args.rstrip().endswith(tuple(_shown(limits.streams))):
            return False  # its own output, opened again
        return bool(_WRITING_FLAGS.search(args)) and not any(f'"{path}"' in args for path in limits.streams)
    if name in ("execve", "execveat"):
        path = args.split('"')[1]
        return not _FAILED.search(args) and Path(path).resolve() != limits.interpreter
    if name in ("kill", "tgkill", "tkill", "pidfd_send_signal", "rt_sigqueueinfo"):
        return args.split(",")[0].lstrip("-") not in limits.pids
    return False


def _target(name: str, args: str) -> str:
    """Return the kind of the descriptor to which `name` writes."""
    descriptors = re.findall(r"\d+<([^>]*)>", args)
    if name in ("splice", "copy_file_range") and len(descriptors) > 1:
        return str(descriptors[1])
    return str(descriptors[0]) if descriptors else args


def _is_own(target: str, limits: _Limits) -> bool:
    return target in limits.streams or target.startswith(("/memfd:", "pipe:[", "anon_inode:"))


def _picture(folder: Path) -> list[tuple[str, int, int, int, bytes]]:
    """Return every file below `folder`: name, mode, size, time of change, content."""
    pictures = []
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        pictures.append((str(path), status.st_mode, status.st_size, status.st_mtime_ns, content))
    return pictures


def _shown(paths: tuple[str, ...]) -> list[str]:
    """Return how strace shows the files of descriptors."""
    return [f"<{path}>" for path in paths]
