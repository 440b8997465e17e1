"""What a worker must have for a task, and whether it has it: without that a verdict would be about the worker."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import replaydbg
from replaydbg.cluster.machine_state import digest_of
from replaydbg.cluster.tasks import JsonObject
from replaydbg.commits.depends import loaded_extensions
from replaydbg.errors import ReplaydbgError
from replaydbg.events.run_facts import PythonBuild
from replaydbg.launch.interpreter import this_python
from replaydbg.log.reader import Recording
from replaydbg.replay.find_python import find_python_and_core


@dataclass(frozen=True, slots=True)
class WorkerNeeds:
    """What a task needs of the machine where it runs."""

    version: str
    """The version of replaydbg."""
    code: str
    """A digest of its modules: two copies of one version in development differ."""
    python: JsonObject
    """The interpreter, as in a recording's header: for a recording that one, else ours."""
    is_replay: bool
    """Whether any interpreter that can replay it will do; if false, replaydbg itself must run in it."""
    extensions: dict[str, str] = field(default_factory=dict)
    """Compiled modules that the recorded program loaded, with digests: a replay loads them from the disk."""

    def facts(self) -> JsonObject:
        """Return it as JSON data."""
        return asdict(self)


def requirement_here() -> WorkerNeeds:
    """Return what a task needs that runs a program anew: this Python."""
    return WorkerNeeds(replaydbg.__version__, own_code(), dict(this_python()), is_replay=False)


def requirement_of(recording: Recording) -> WorkerNeeds:
    """Return what replays of a recording need; compiled modules that are not on this machine are left out."""
    python = {name: getattr(recording.header.python, name) for name in _PYTHON}
    found = {}
    for path in loaded_extensions(recording):
        digest = digest_of(path)
        if digest:
            found[path] = digest
    return WorkerNeeds(replaydbg.__version__, own_code(), python, is_replay=True, extensions=found)


_PYTHON = ("version", "hexversion", "executable", "prefix", "cache_tag", "soabi")


def why_unfit(needs: JsonObject) -> str:
    """Return why this machine cannot run a task with these needs, as the end of a sentence; empty: it can."""
    if needs["version"] != replaydbg.__version__:
        return f"it has replaydbg {replaydbg.__version__}, and the task needs {needs['version']}"
    if needs["code"] != own_code():
        return f"its replaydbg {replaydbg.__version__} has other modules than the one that sent the task"
    why = _why_no_python(needs)
    if why:
        return why
    for path, digest in needs["extensions"].items():
        here = digest_of(path)
        if here != digest:
            return f"it has {'another' if here else 'no'} {path!r}, which the recorded program loaded"
    return ""


@cache
def _can_replay(version: str, hexversion: int, soabi: str) -> bool:
    """Whether this machine has an interpreter of that build, and a core for it."""
    try:
        find_python_and_core("", PythonBuild(version, hexversion, "", "", "", soabi, ()))
    except ReplaydbgError:
        return False
    return True


def _why_no_python(needs: JsonObject) -> str:
    python = needs["python"]
    if needs["is_replay"]:
        if _can_replay(python["version"], python["hexversion"], python["soabi"]):
            return ""
        return f"it has Python {_named(this_python())}, and the recording needs Python {_named(python)}"
    here = this_python()
    if (here["hexversion"], here["soabi"]) != (python["hexversion"], python["soabi"]):
        return f"it has Python {_named(here)}, and the task needs Python {_named(python)}"
    return ""


def _named(python: JsonObject) -> str:
    return f"{python['version']} ({python['soabi']})"


@cache
def own_code() -> str:
    """Return a digest of the modules of this package: of their content, since times differ between machines."""
    root = Path(replaydbg.__file__).parent
    whole = hashlib.blake2b(digest_size=16)
    for path in sorted(root.rglob("*.py")):
        whole.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
        whole.update(path.read_bytes())
    return whole.hexdigest()
