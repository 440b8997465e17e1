"""Read the inputs of a recorded program from its recording. Nothing of it is executed, and no secret is decrypted."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from replaydbg.errors import Corrupt, NotBuilt, UsageError
from replaydbg.events.records import Control, Event
from replaydbg.exported_tests.followed_calls import TimeAndChance
from replaydbg.exported_tests.followed_files import FileReads
from replaydbg.exported_tests.followed_sockets import Sockets
from replaydbg.exported_tests.gaps import GapFinder
from replaydbg.exported_tests.program_part import ProgramPart, recorded_test
from replaydbg.exported_tests.recorded_inputs import FoundInputs, RecordedProgram
from replaydbg.installed import is_installed
from replaydbg.log.reader import Recording
from replaydbg.log.sources import source_text, sources_of

_SEED = "_random.Random.seed"
_NOT_INPUTS = re.compile(r"PATH|PWD|OLDPWD|_|SHLVL|VIRTUAL_ENV|(?:PYTHON|PYTEST_|LD_|REPLAYDBG_|RECORDED_INPUTS).*")
"""Variables that are the machine's, even if a program names them; or would let another program run."""
_OF_INTERPRETER = ("TZ", "LANG", "LANGUAGE", "LC_ALL", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONOPTIMIZE")
"""Variables by which times, encodings and assertions differ, although no program names them."""
_NAMED_BY_CALLS = {
    "HOME": re.compile(r"\bexpanduser\b|\bPath\.home\b"),
    "LOGNAME": re.compile(r"\bgetuser\b"),
    "USER": re.compile(r"\bgetuser\b"),
}
"""Variables that functions of the standard library read for the program."""
_TOOL = ("/replaydbg/pytest_plugin/", "/replaydbg/gates/", "/replaydbg/events/", "/replaydbg/launch/")
_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READ = re.compile(r"""(?:environ(?:\.get)?|getenv)\s*[\[(]\s*["']([A-Za-z_][A-Za-z0-9_]*)["']""")
_ALL_OF_ENVIRONMENT = re.compile(
    r"(?<!import )(?<!\"\sin\sos\.)(?<!'\sin\sos\.)\benviron\b(?!\s*\[\s*[\"']|\.(?:get|setdefault|pop)\s*\(\s*[\"'])"
)
"""A use of the environment that does not name its variable."""
_LOCAL_TIME = re.compile(r"\b(?:fromtimestamp|localtime|mktime|astimezone|ctime)\b")
_RANDOM = re.compile(r"\brandom\b|\bshuffle\b")


class CollectedInputs:
    """Everything for a test, in values that have no secrets in the clear."""

    def __init__(self, recording: Recording, name: str) -> None:
        """Read a recording that was opened without its secrets. Raises Corrupt, and UsageError without a test."""
        if recording.header.branch is not None:
            raise UsageError(f"{recording.name} is a forked child, which begins in the middle: export its parent.")
        if recording.end is None:
            raise UsageError(f"{recording.name} has no end: how the program ended is not known.")
        self.inputs = FoundInputs()
        self._test = recorded_test(recording)
        sources = _own_sources(recording)
        if recording.header.kind == "command":
            sources["<string>"] = recording.header.target
        self.random_state: object = None
        """The state of the module `random` when a test of pytest began; None: that of its seed."""
        self._follow(recording)
        if not any(_RANDOM.search(each) for each in sources.values()):
            if self.inputs.seeds:
                self.inputs.gaps["random numbers that libraries draw: the program's own code names no `random`"] = None
            self.inputs.seeds.clear()
            self.random_state = None
        self.program = _program(recording, name, self._test, sources)
        if any(_ALL_OF_ENVIRONMENT.search(each) for each in sources.values()):
            gap = "variables of the environment that the program finds without naming them: they are today's"
            self.inputs.gaps[gap] = None
        if "TZ" not in recording.header.env and any(_LOCAL_TIME.search(each) for each in sources.values()):
            self.inputs.gaps["the time zone, which is that of the machine"] = None
        if recording.header.stdio[:1] == ("tty",) and self.inputs.stdin:
            self.inputs.gaps["the terminal: its standard input is a pipe with what was typed"] = None

    def _follow(self, recording: Recording) -> None:
        found = self.inputs
        files = FileReads(recording, found, is_test=self._test is not None)
        sockets, calls, gaps = Sockets(recording, found), TimeAndChance(found), GapFinder(found)
        part = ProgramPart(recording, self._test)
        self.random_state = part.random_state
        if part.has_earlier_inputs:
            found.gaps["what the project's code read before the test's setup, such as files in imports"] = None
        for entry in part.entries():
            if isinstance(entry, Control):
                gaps.control(entry)
            elif not (files.event(entry) or sockets.event(entry) or calls.event(entry)):
                gaps.event(entry)
        files.finish()
        sockets.finish()
        gaps.finish(recording, is_test=self._test is not None)
        # With what the module `random` was seeded before the program's part.
        for entry in recording.events(gate=_SEED, last=part.first - 1, controls=False):
            if isinstance(entry, Event) and isinstance(entry.outcome, bytes):
                self.inputs.seeds.insert(0, entry.outcome)
                break


def _program(
    recording: Recording, name: str, test: dict[str, object] | None, sources: dict[str, str]
) -> RecordedProgram:
    header, end = recording.header, recording.end
    assert end is not None
    kind, target, status = header.kind, header.target, end.status
    exception, message = end.exception, ""
    if test is not None:
        failure = test.get("failure")
        failure = failure if isinstance(failure, dict) else {}
        kind, target = "test", _text(recording, test.get("nodeid"))
        exception, message = _text(recording, failure.get("type", "")), _text(recording, failure.get("message", ""))
        status = 0 if test.get("outcome") in ("passed", "skipped") else 1
    named = {name for each in sources.values() for name in _NAMED.findall(each)}
    read = {name for each in sources.values() for name in _READ.findall(each)} | {*_OF_INTERPRETER}
    read |= {name for name, call in _NAMED_BY_CALLS.items() if any(map(call.search, sources.values()))}
    named |= read
    return RecordedProgram(
        recording=name,
        created=header.created,
        kind=kind,
        target=target,
        arguments=header.argv[1:] if test is None else (),
        cwd=header.cwd,
        options=header.python.flags,
        environment={name: value for name, value in header.env.items() if name in named and _is_input(name)},
        module_directories=_module_directories(header.env.get("PYTHONPATH", ""), header.cwd),
        absent=tuple(sorted(name for name in read - {*header.env, *_NAMED_BY_CALLS} if _is_input(name))),
        hash_seed=header.hash_seed,
        status=status,
        exception=exception,
        message=message,
        seconds=end.seconds,
    )


def _module_directories(path: str, cwd: str) -> tuple[str, ...]:
    inside = [os.path.relpath(os.path.join(cwd, each), cwd) for each in path.split(":") if each]  # noqa: PTH118
    return tuple(each for each in inside if each.split("/")[0] != "..")


def _is_input(name: str) -> bool:
    return name in _OF_INTERPRETER or _NOT_INPUTS.fullmatch(name) is None


def _own_sources(recording: Recording) -> dict[str, str]:
    """Return the texts of the program's own sources by path."""
    found = sources_of(recording).items()
    return {path: source_text(data) for path, data in found if not (is_installed(path) or _is_of_tool(path))}


def _is_of_tool(path: str) -> bool:
    """Whether a source is part of replaydbg, which may be installed from a checkout."""
    return any(part in path for part in _TOOL)


def _text(recording: Recording, value: object) -> str:
    if not isinstance(value, str):
        raise Corrupt(str(recording.path), "its test is not valid")
    return value


def mask_of(recording: Recording) -> Callable[[bytes], bytes]:
    """Return what masks secrets in a recording that was never sealed, or keeps them. Raises NotBuilt."""
    wishes = recording.header.raw.get("secrets")
    is_kept = isinstance(wishes, dict) and wishes.get("kept") is not False
    if not recording.is_live and not is_kept:
        return bytes
    try:
        # Imported here: it is compiled code, which a machine that only reads does not have.
        from replaydbg.record.hiding import masks_of, secrets_of
    except ImportError as error:
        raise NotBuilt(str(error)) from error
    found = secrets_of(recording.pieces, sources_of(recording).values())
    masks: Any = masks_of(found) if found else None
    return bytes if masks is None else lambda data: bytes(masks.masked(data))
