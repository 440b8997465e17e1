"""`replay` and `debug --batch` of a mutated recording, each as a command of its own, also under AddressSanitizer."""

import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.fuzz.attempt import Bad, Ran
from tests.fuzz.limits import MEMORY, SECONDS
from tests.fuzz.space import scratch, scratch_file
from tests.fuzz.targets import shape
from tests.harness.process import is_ended_within

WAIT = 90.0
"""Seconds after which a command is ended that uses no CPU time either."""

_WORDS: dict[str, tuple[str, ...]] = {
    "replay": ("replay", "-q", "FILE"),
    "debug": ("debug", "--batch", "-q", "-c", "where", "-c", "reverse-next", "-c", "locals", "-c", "start", "FILE"),
}
OUTSIDE = tuple(_WORDS)
_OURS = re.compile(r'File "[^"]*/replaydbg/(?!demo)')
_SANITIZER = re.compile(r"(ERROR: AddressSanitizer: [\w-]+|runtime error: [^\n]{0,80})")
_FRAME = re.compile(r"#\d+ 0x[0-9a-f]+ in (\w+) [^\n]*replaydbg/native")


class Tool(NamedTuple):
    """A way to run the command line."""

    python: str
    env: dict[str, str]
    is_sanitized: bool = False


def plain_tool(place: Path) -> Tool:
    """Return the tool of this environment, with a store of its own at `place`."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("REPLAYDBG", "PYTHON"))}
    return Tool(sys.executable, {**env, "XDG_DATA_HOME": str(place), "PYTHONPATH": str(Path(__file__).parents[2])})


def outside(name: str, tool: Tool, data: bytes, rng: Random) -> Ran:
    """Run a command over a recording, and judge it."""
    path = scratch_file("outside.rdbg", data)
    words = [path if each == "FILE" else each for each in _WORDS[name]]
    with tempfile.TemporaryFile(dir=scratch(os.getpid())) as out:
        process = subprocess.Popen(
            [tool.python, "-m", "replaydbg", *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=tool.env,
            cwd=scratch(os.getpid()),
            start_new_session=True,
            preexec_fn=_sanitized_limits if tool.is_sanitized else _limits,
        )
        is_late = not is_ended_within(process.pid, WAIT)
        if is_late:
            os.killpg(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        # None of its processes may remain; the group is its own.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read(200_000).decode("utf-8", "replace")
    seconds = usage.ru_utime + usage.ru_stime
    bad = _judged(name, process.returncode, said, seconds, usage.ru_maxrss << 10, is_late, tool)
    if bad is not None:
        return Ran("", bad)
    return Ran(f"{name} {process.returncode} {shape(said.splitlines()[-4:])}", None)


def _judged(name: str, code: int, said: str, seconds: float, memory: int, is_late: bool, tool: Tool) -> Bad | None:
    way = f"{name}{' (sanitized)' if tool.is_sanitized else ''}"
    tail = said[-3000:]
    found = _SANITIZER.search(said)
    if found:
        frame = _FRAME.search(said, found.start())
        where = frame[1] if frame else ""
        return Bad(f"{way} {shape([found[1]])} {where}", said[found.start() : found.start() + 4000])
    if _OURS.search(said) and "Traceback" in said:
        return Bad(f"{way} traceback {shape(said.splitlines()[-1:])}", tail)
    if is_late:
        return Bad(f"{way} waits", f"not ended after {WAIT} s, {seconds:.1f} s of CPU time\n{tail}")
    if seconds > SECONDS * (5 if tool.is_sanitized else 1):
        return Bad(f"{way} time", f"{seconds:.1f} s of CPU time\n{tail}")
    if memory > MEMORY * (2 if tool.is_sanitized else 1):
        return Bad(f"{way} memory", f"{memory >> 20} MiB\n{tail}")
    if code < 0:
        return Bad(f"{way} signal {-code}", f"ended by signal {-code}\n{tail}")
    if name == "debug" and code not in (0, 1, 2, 3, 4):
        return Bad(f"{way} exit code {code}", tail)
    return None


def _limits() -> None:
    _sanitized_limits()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, hard))


def _sanitized_limits() -> None:
    # No limit on addresses: the sanitizer's shadow takes 16 TiB.
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (80, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
