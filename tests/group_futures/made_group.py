"""Record a small program with its processes, and make futures of the group with the command."""

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.futures.made import environment
from tests.harness.process import Finished, run
from tests.harness.sanitizer import IS_SANITIZED

FIXTURES = Path(__file__).parents[2] / "fixtures" / "futures" / "groups"
TIMEOUT, RECORDED = (280.0 if IS_SANITIZED else 90.0), 15.0
TRIES = 30
_INCOMPLETE = 6
"""The exit code of a replay of a process that a signal ended."""


@dataclass(frozen=True, slots=True)
class MadeGroup:
    """A directory with a recording `one.rdbgs` of `program.py` and its processes."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, text: str, *options: str, status: int = 0) -> "MadeGroup":
        """Record the program `text`, again and again until it ends with `status`."""
        made = cls(folder)
        (folder / "program.py").write_text(text)
        for _ in range(TRIES):
            # A race may come to a deadlock here, too.
            finished = made.replaydbg("record", "-q", *options, "-o", "one.rdbgs", "program.py", timeout=RECORDED)
            if finished.status == status:
                return made
            shutil.rmtree(folder / "one.rdbgs", ignore_errors=True)
        raise AssertionError(f"no run ended with {status}: {finished}")

    @classmethod
    def of_fixture(cls, folder: Path, name: str) -> "MadeGroup":
        """Record a fixture until it passes."""
        return cls.make(folder, (FIXTURES / f"{name}.py").read_text())

    def replaydbg(self, *words: str, timeout: float = TIMEOUT) -> Finished:
        """Run a command in this directory."""
        command = [sys.executable, "-m", "replaydbg", *words]
        return run(command, cwd=self.folder, env=environment(self.folder), timeout=timeout)

    def event_of(self, gate: str, process: int = 1) -> int:
        """Return the first event of a gate."""
        with open_recording(self.folder / "one.rdbgs" / f"{process}.rdbg") as recording:
            return next(each.number for each in recording.events() if isinstance(each, Event) and each.gate == gate)

    def futures(self, count: int = 20, *words: str) -> dict[str, Any]:
        """Make futures, and return what came of them."""
        finished = self.replaydbg("futures", "one.rdbgs", "-n", str(count), "--json", *words)
        assert finished.status in (0, 1, 3), finished.stderr.decode()
        found: dict[str, Any] = json.loads(finished.stdout)
        return found

    def one(self, *words: str) -> dict[str, Any]:
        """Make one future, and return the group that it is."""
        (group,) = self.futures(1, *words)["groups"]
        found: dict[str, Any] = group
        return found

    def kept(self, folder: str = "kept") -> list[Path]:
        """Return the directories of the groups that were kept."""
        return sorted((self.folder / folder).glob("*.rdbgs"))

    def replays(self, group: Path) -> bool:
        """Whether a group is sound, and each of its processes replays as it is recorded."""
        assert self.replaydbg("verify", str(group)).status == 0
        members = sorted(group.glob("*.rdbg"))
        assert members
        statuses = {
            each["number"]: each["status"] for each in json.loads((group / "group.json").read_text())["processes"]
        }
        for member in members:
            finished = self.replaydbg("replay", "-q", str(member))
            recorded = statuses[int(member.stem)]
            is_right = recorded is None or finished.status == (recorded if recorded >= 0 else _INCOMPLETE)
            if b"diverged" in finished.stderr or not is_right:
                print(member, recorded, finished)
                return False
        return True
