"""Open the recording of a forked child from its parent's checkpoints: what both have in common is not run again."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.engine_start import MOST_WRITTEN, Engine, Files, new_files
from replaydbg.engine.process_memory import MemoryBudget
from replaydbg.engine.travel import Travel
from replaydbg.errors import EngineLost
from replaydbg.events.run_facts import Branch, Header
from replaydbg.log.coding.encode import varint
from replaydbg.log.reader import Recording, open_recording
from replaydbg.replay.memory_limit import memory_limit
from replaydbg.replay.result import ended_by_itself
from replaydbg.replay.time_limits import cpu_limits
from replaydbg.replay.unpacked_logs import UnpackedLogs, unpack_logs

MOST_EARLIER = 50
"""Checkpoints of the parent that are cloned for its child."""

MORE_MEMORY = 1 << 30
"""Bytes of address space that a child may need more than its parent had: of what a process reserves and hardly uses."""

ORDER = ("output", "raises", "steps", "totals")
"""The files of the first pass, as the core counts them."""


def branched(path: Path, parent: Travel, *, spacing: float, memory: int | MemoryBudget) -> Travel | None:
    """Return the processes of a session of a child, at the last checkpoint of its parent before the fork.

    None: its recording has to be replayed from its beginning. `parent` is the session of the process that forked it.
    Raises Corrupt, and ForgedMessage.
    """
    with open_recording(path) as recording, open_recording(parent.path) as before, ExitStack() as stack:
        branch = recording.header.branch
        if branch is None or not _continues(recording, before):
            return None
        logs = unpack_logs(recording, stack)
        # The processes have their parent's limits, and no timer: one of a program that was killed might run for ever.
        needed = [memory_limit(each, logs.mapped(), is_session=True) for each in (recording, before)]
        if logs.is_cut or not ended_by_itself(recording) or needed[0] > needed[1] + MORE_MEMORY:
            return None
        most = cpu_limits(recording, is_cut=False, by_lines=True).between
        made = _Branching(parent, branch, logs)
        try:
            return made.travel(path, spacing, memory, most)
        except BaseException as error:
            made.close()
            if isinstance(error, EngineLost):
                return None
            raise


def _continues(recording: Recording, parent: Recording) -> bool:
    """Whether a recording is that of a child of a process, which was started as the process was."""
    child, header = recording.header, parent.header
    assert child.branch is not None, "it is checked before"
    is_child = bool(header.group) and (child.group, child.branch.process) == (header.group, header.process)
    return is_child and _start_of(child) == _start_of(header)


def _start_of(header: Header) -> Header:
    return replace(header, name="", process=0, branch=None, outputs=())


@dataclass(slots=True)
class _Branching:
    """Clones of a parent's checkpoints are becoming those of a child."""

    parent: Travel
    branch: Branch
    logs: UnpackedLogs
    files: Files = field(default_factory=new_files)
    made: list[EngineProcess] = field(default_factory=list)

    def close(self) -> None:
        """End all of them."""
        for each in self.made:
            each.kill()
        self.files.close()

    def travel(self, path: Path, spacing: float, memory: int | MemoryBudget, most_seconds: float) -> Travel | None:
        """Return the processes of the child's session; None: no checkpoint can run the rest of the program."""
        earlier = [each for each in self.parent.timeline.standing() if each.event < self.branch.event]
        root = None
        while earlier and root is None:
            clone = self._cloned(earlier[-1])
            if self._become(clone, is_first=True):
                root = clone
            else:
                earlier.pop()  # it ran after it was left: it only serves as a checkpoint
        if root is None:
            self.close()
            return None
        self.made.remove(root)
        # The first one and the last one, which is where the root is, and others between.
        for each in [*earlier[: -1 : max(len(earlier) // MOST_EARLIER, 1)], earlier[-1]]:
            self._become(self._cloned(each), is_first=False)
        engine = Engine.of_child(self.parent.engine, self.files, root)
        return Travel.branched(path, engine, self.made, spacing=spacing, memory=memory, most_seconds=most_seconds)

    def _cloned(self, checkpoint: EngineProcess) -> EngineProcess:
        clone = checkpoint.clone()
        self.made.append(clone)
        return clone

    def _become(self, clone: EngineProcess, *, is_first: bool) -> bool:
        """Let a clone become the child; return whether it can run the whole program, which `is_first` asks for."""
        logs = [self.logs.files["log"].fileno(), self.logs.files["world"].fileno()]
        place = self.logs.content_place
        content = self.logs.content.fd if self.logs.content is not None else self.logs.files["content"].fileno()
        numbers = (self.branch.log, self.branch.world, 0, int(place is not None), *(place or (0, 0, 0, 0, 0)))
        orders = b"".join(map(varint, numbers))
        return clone.become_child(orders, [*logs, content], self._taken_over if is_first else None)

    def _taken_over(self, written: list[int]) -> list[int]:
        """Copy what the parent's first process had written by then; return the files in which the child goes on."""
        for name, size in zip(ORDER, written, strict=True):
            before, after = (getattr(files, name).fileno() for files in (self.parent.engine.files, self.files))
            if not 0 <= size <= min(MOST_WRITTEN[name], os.fstat(before).st_size):
                raise self.parent.engine.keeping.forged("it claims to have written more than it did")
            at = 0
            while at < size:
                piece = os.pread(before, min(size - at, 1 << 20), at)
                os.write(after, piece)
                at += len(piece)
        return [getattr(self.files, name).fileno() for name in ORDER]
