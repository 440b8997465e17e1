"""Run CRIU: save a stopped process into a directory, and bring it back as a child of this process."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from replaydbg.config import criu_program

OLDEST = (4, 0)
"""The oldest version that is used: earlier ones fail on kernels from 6.13 on (`Unexpected rt vDSO area bounds`)."""
_PATIENCE = 600.0
"""Seconds that it has for one image."""
_REAPING = 10.0
"""Seconds that a killed process may keep its process id."""
_ERROR = re.compile(r"^(?:\([0-9.]+\))?\s*(?:[0-9]+: )?Error \([^)]*\): (.*)$", re.MULTILINE)


class CriuFailed(Exception):
    """CRIU is missing, or could not do what it was asked for; its text is a clause for people."""

    def __init__(self, reason: str, *, is_broken: bool = False) -> None:
        super().__init__(reason)
        self.is_broken = is_broken
        """Whether the process that was to be saved may be left in a state in which it cannot go on."""


@cache
def check_criu(named: str = "") -> str:
    """Return the path of the program `named` (default: that of the environment).

    Raises CriuFailed if it is missing, too old, or may not be used.
    """
    named = named or criu_program()
    program = shutil.which(named)
    if program is None:
        raise CriuFailed(f"the program {named!r} is not installed (see REPLAYDBG_CRIU)")
    if not may_save():
        raise CriuFailed("CRIU needs root, or the capabilities CAP_CHECKPOINT_RESTORE and CAP_SYS_PTRACE")
    found = re.search(r"^Version: ([0-9]+)[.]([0-9]+)", _output([program, "--version"]), re.MULTILINE)
    if found is None:
        raise CriuFailed(f"{program} does not report its version")
    version = (int(found[1]), int(found[2]))
    if version < OLDEST:
        raise CriuFailed(f"{program} has version {found[1]}.{found[2]}, and {OLDEST[0]}.{OLDEST[1]} is needed")
    return program


def may_save() -> bool:
    """Whether this process may save others: it is root, or has CAP_CHECKPOINT_RESTORE and CAP_SYS_PTRACE."""
    if os.geteuid() == 0:
        return True
    status = Path("/proc/self/status").read_text()
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    effective = int(found[1], 16) if found is not None else 0
    return bool(effective >> 40 & 1 and effective >> 19 & 1)


@cache
def tracks_memory() -> bool:
    """Whether the kernel and CRIU can save only those pages that have changed since the last image."""
    words = [check_criu(), "check", "--feature", "mem_dirty_track"]
    return subprocess.run(words, capture_output=True, check=False, timeout=_PATIENCE).returncode == 0


def _output(words: Sequence[str]) -> str:
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=_PATIENCE).stdout
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise CriuFailed(f"{words[0]} cannot be run: {error}") from error


def save(pid: int, directory: Path, parent: str = "") -> None:
    """Save the process `pid` into `directory`, and leave it stopped (SIGSTOP). Raises CriuFailed.

    `parent` is the directory of the last image, relative to `directory`, if only changed pages are to be saved.
    """
    words = [check_criu(), "dump", "--tree", str(pid), "--shell-job", "--leave-stopped", *_files(directory)]
    if tracks_memory():
        words += ["--track-mem", *(["--prev-images-dir", parent] if parent else [])]
    # A session of its own: Ctrl-C must not end it while it controls the process.
    _run(words, directory, starts_session=True)


def bring_back(directory: Path, files: Mapping[Path, int], log: Path) -> int:
    """Bring the process back that `directory` has, as a child of this one; return its process id. Raises CriuFailed.

    `files` are descriptors that it gets in place of files it had open or mapped, by their paths at that time. Messages
    go to the file `log`.
    """
    words = [check_criu(), "restore", "--shell-job", "--restore-detached", "--restore-sibling"]
    words += ["--images-dir", str(directory), "--log-file", str(log), "--pidfile", f"{log}.pid", "-v1"]
    for path, fd in files.items():
        words += ["--inherit-fd", f"fd[{fd}]:{str(path).lstrip('/')}"]
    _run(words, directory, log=log, fds=tuple(files.values()))
    try:
        return int(Path(f"{log}.pid").read_text())
    except (OSError, ValueError) as error:
        raise CriuFailed("it does not report which process it has brought back") from error


def await_process_id(pid: int) -> None:
    """Wait until no process has the id `pid`: one that was just killed has it until its parent has waited for it.

    Raises CriuFailed if another one runs.
    """
    until = time.monotonic() + _REAPING
    while True:
        try:
            state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except (OSError, IndexError):
            return
        if state not in (b"Z", b"X") or time.monotonic() > until:
            raise CriuFailed(f"another process has its process id {pid}")
        time.sleep(0.01)


def _files(directory: Path) -> list[str]:
    return ["--images-dir", str(directory), "--log-file", "criu.log", "-v1"]


def _run(
    words: list[str],
    directory: Path,
    *,
    log: Path | None = None,
    fds: tuple[int, ...] = (),
    starts_session: bool = False,
) -> None:
    null = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            words, stdin=null, stdout=null, stderr=null, pass_fds=fds, start_new_session=starts_session
        )
    except OSError as error:
        raise CriuFailed(f"{words[0]} cannot be run: {error.strerror}") from error
    try:
        status = process.wait(_PATIENCE)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.wait()
        _end_helpers(process.pid, starts_session=starts_session)
        raise CriuFailed(f"CRIU took more than {_PATIENCE:.0f} s", is_broken=True) from error
    if status < 0:
        _end_helpers(process.pid, starts_session=starts_session)
        raise CriuFailed(f"CRIU was ended by {signal.Signals(-status).name}", is_broken=True)
    if status != 0:
        raise CriuFailed(f"CRIU: {_first_error(directory / 'criu.log' if log is None else log)}")


def _end_helpers(group: int, *, starts_session: bool) -> None:
    """End the processes that CRIU has started, and that may be stopped when it is killed."""
    if starts_session:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _first_error(log: Path) -> str:
    try:
        found = _ERROR.findall(log.read_text(errors="replace"))
    except OSError:
        found = []
    # A limit that it cannot raise is reported first, and no failure.
    found = [each for each in found if "RLIMIT_NOFILE" not in each]
    return found[0].strip().rstrip(".") if found else "it failed without a message"
