"""Record a small program, and make futures of it with the command."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaydbg.events.records import Control, ControlKind, Event
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering

TIMEOUT = 90.0

LOST_UPDATE = """import threading
total = 0
go = threading.Event()
def add():
    global total
    go.wait()
    for _ in range(3):
        before = total
        total = before + 1
threads = [threading.Thread(target=add) for number in (1, 2)]
for thread in threads:
    thread.start()
go.set()
for thread in threads:
    thread.join()
assert total == 6, total
"""
"""Two threads raise a number without a lock."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A directory with a recording `one.rdbg` of `program.py`."""

    folder: Path
    status: int

    @classmethod
    def make(
        cls, folder: Path, text: str, *options: str, words: tuple[str, ...] = (), status: int | None = 0
    ) -> "Ground":
        """Record the program `text`, which ends with `status` (None: any)."""
        (folder / "program.py").write_text(text)
        command = tool.record(sys.executable, Path("one.rdbg"), ["program.py", *words], options)
        finished = run(command, cwd=folder, env=environment(folder), timeout=TIMEOUT)
        assert status is None or finished.status == status, finished
        return cls(folder, finished.status)

    @classmethod
    def passing(cls, folder: Path, text: str) -> "Ground":
        """Record the program `text`, which has a race, until it passes."""
        for _ in range(20):
            ground = cls.make(folder, text, status=None)
            if ground.status == 0:
                return ground
        raise AssertionError("no run passed")

    def replaydbg(self, *words: str, is_strict: bool = True) -> Finished:
        """Run a command that keeps its recordings in this directory; see `environment`."""
        command = [sys.executable, "-m", "replaydbg", *words]
        env = environment(self.folder)
        if not is_strict:
            env.pop("REPLAYDBG_TEST_STRICT")
        return run(command, cwd=self.folder, env=env, timeout=TIMEOUT)

    def futures(self, at: int | str, count: int = 20, *words: str) -> dict[str, Any]:
        """Make futures, and return what came of them."""
        finished = self.replaydbg("futures", "one.rdbg", "--at", str(at), "-n", str(count), "--json", *words)
        assert finished.status in (0, 1, 3), finished.stderr.decode()
        found: dict[str, Any] = json.loads(finished.stdout)
        return found

    def one(self, at: int | str) -> dict[str, Any]:
        """Make one future, and return the group that it is."""
        (group,) = self.futures(at, 1)["groups"]
        found: dict[str, Any] = group
        return found

    def first_thread(self) -> int:
        """Return the last event before the first thread is started."""
        with open_recording(self.folder / "one.rdbg") as recording:
            starts = (
                max(entry.after, 1)
                for entry in recording.events()
                if isinstance(entry, Control) and entry.kind is ControlKind.LANE_STARTED
            )
            return next(starts)

    def event(self, gate: str, number: int = 0) -> int:
        """Return the event of a call from the program itself: of those of a gate, the one with this index."""
        with open_recording(self.folder / "one.rdbg") as recording:
            found = [
                event.number
                for event in recording.events(controls=False)
                if isinstance(event, Event) and event.gate == gate and str(event.site.file).endswith("program.py")
            ]
        return found[number]

    def replay(self, name: str) -> Finished:
        """Replay a recording strictly."""
        command = tool.replay(sys.executable, Path(name))
        return run(command, cwd=self.folder, env=environment(self.folder), timeout=TIMEOUT)


def environment(folder: Path) -> dict[str, str]:
    """Return variables with which the collector's state is compared at each event."""
    return without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store"), "REPLAYDBG_TEST_STRICT": "1"}
