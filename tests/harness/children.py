"""Record a program with its children, and replay each of its processes alone.

The recorded processes print to the same two streams. What the replays print must be the same lines: all of them, and
each by the process that printed it.
"""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from replaydbg.log.group import Group, GroupProcess, read_group
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.replay_cases import Case
from tests.harness.replays import Outcome, Scene, run
from tests.harness.waiting import wait_until

CHILDREN = ("--children=fork",)
PROGRAMS = ("--children=python",)


@dataclass(frozen=True, slots=True)
class RecordedGroup:
    """A group of processes that was recorded."""

    scene: Scene
    recorded: Outcome
    group: Group

    @property
    def directory(self) -> Path:
        """The directory of the group."""
        return self.scene.base / "recording.rdbgs"

    def recording(self, number: int) -> Path:
        """The recording of a process."""
        return self.directory / f"{number}.rdbg"

    def replay(self, number: int) -> Outcome:
        """Replay a process in a changed world, where its inputs are gone."""
        return self._elsewhere(tool.replay(self.scene.python, self.directory / str(number)))

    def _elsewhere(self, command: Sequence[str]) -> Outcome:
        for name in ("work", "tmp", "home"):
            shutil.rmtree(self.scene.base / name, ignore_errors=True)
        elsewhere = self.scene.base / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        return run(command, cwd=elsewhere, env=self.scene._changed_env() | self.scene._orders("replay", 2))

    def replay_all(self, *options: str) -> Outcome:
        """Replay all processes at once, in a changed world."""
        return self._elsewhere([self.scene.python, "-m", "replaydbg", "replay", "-q", *options, str(self.directory)])

    def recorded_processes(self) -> list[GroupProcess]:
        """The processes with a recording."""
        return [each for each in self.group.processes if each.recording]


def record_group(
    case: Case, options: Sequence[str] = CHILDREN, *, parent: tuple[str, str] | None = None
) -> RecordedGroup:
    """Record a fixture with its children, and wait until all of them are sealed.

    `parent` is the source of a program whose child is the fixture, and the option with which it is recorded.
    """
    scene = Scene.make(case.program, args=case.args, stdin=case.stdin, flags=case.flags, env=case.env, how=case.how)
    words = scene._lay_out()
    expected = {case.status or 0}
    if parent is not None:
        source, option = parent
        options = (option,)
        (scene.work / "_parent.py").write_text(source)
        words.insert(len(scene.flags), "_parent.py")
        expected = set(range(256)) if case.status is None else {case.status if case.status >= 0 else 128 - case.status}
    command = tool.record(sys.executable, scene.base / "recording", words, options=options)
    recorded = scene._run(command, scene._orders("record", 1))
    assert recorded.status in expected, recorded.stderr
    return RecordedGroup(scene, recorded, completed(scene.base / "recording.rdbgs"))


def completed(directory: Path) -> Group:
    """Return the group in a directory when all of its recordings are sealed."""
    wait_until(lambda: read_group(directory).is_complete, message=lambda: read_group(directory))
    assert not [each for each in directory.iterdir() if each.name.endswith("-live")], sorted(directory.iterdir())
    return read_group(directory)


def assert_group_replays(case: Case, options: Sequence[str] = CHILDREN) -> Group:
    """Record a fixture with its children, and assert that each of its processes replays alone."""
    made = record_group(case, options)
    replays = {each.number: made.replay(each.number) for each in made.recorded_processes()}

    kinds = {}
    for process in made.recorded_processes():
        with open_recording(made.recording(process.number)) as recording:
            recording.check()
            assert recording.problems == (), recording.problems
            kinds[process.number] = recording.header.stdio
        assert process.status is not None, process
        # A signal from outside is not repeated: the replay ends where the recording does.
        expected = {128 - process.status, tool.ENDS_EARLY} if process.status < 0 else {process.status}
        if any(each.how == "exec" and each.parent == process.number for each in made.group.processes):
            expected = {tool.ENDS_EARLY}  # it was replaced
        outcome = replays[process.number]
        assert outcome.status in expected, (made.recording(process.number), process, outcome)
    for place, stream in ((1, "stdout"), (2, "stderr")):
        printed = _lines(made.scene, [getattr(made.recorded, stream)])
        # A replay also shows what a program wrote to a pipe, which its parent read.
        shown = [number for number in replays if kinds[number][place] == kinds[1][place]]
        replayed = _lines(made.scene, [getattr(replays[number], stream) for number in shown])
        assert printed == replayed, (made.directory, stream, printed - replayed, replayed - printed)
    made.scene.remove()
    return made.group


def assert_all_replay(case: Case, parent: tuple[str, str]) -> None:
    """Record a fixture as a child of another program, and assert that all processes replay at once; see `record_group`.

    Compared are the results of each, and all that they print together.
    """
    made = record_group(case, parent=parent)
    facts = json.loads(made.replay_all("--json").stdout)
    results = {each["process"]: each for each in facts["processes"]}
    for process in made.recorded_processes():
        with open_recording(made.recording(process.number)) as recording:
            recording.check()
            assert recording.problems == (), (process, recording.problems)
        result = results[process.number]
        assert result["error"] is None, (made.directory, process, result)
        replay = result["replay"]
        assert not replay["drift"] or not case.how.is_strict, (made.directory, process, replay)
        was_ended = "process image" in replay["ended_early"] or (process.status or 0) < 0 or case.how.is_cut_short
        assert replay["is_whole"] or was_ended, (made.directory, process, replay)
        assert not replay["is_whole"] or replay["status"] == process.status, (made.directory, process, replay)
    replayed = made.replay_all()
    for stream in ("stdout", "stderr"):
        printed = _lines(made.scene, [getattr(made.recorded, stream)])
        shown = _lines(made.scene, [getattr(replayed, stream)])
        if case.how.is_cut_short or (case.status or 0) < 0:  # what C code prints about a crash is not repeated
            printed &= shown
        assert printed == shown, (made.directory, stream, printed - shown, shown - printed)
    made.scene.remove()


def _lines(scene: Scene, texts: list[str]) -> "Counter[str]":
    # The report of the final globals may come in the middle of a line of the other stream.
    lines = (scene.comparable(text).replace("globals: ", "\nglobals: ").splitlines() for text in texts)
    return Counter(line for each in lines for line in each if line)
