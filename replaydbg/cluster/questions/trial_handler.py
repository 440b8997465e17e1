"""Test a recording at a commit, as `ci` does: the handler of the tasks of `trial_tasks`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from replaydbg.cluster.machine_state import state_between_machines
from replaydbg.cluster.questions.sent_checkout import checkout_of
from replaydbg.cluster.tasks import JsonObject
from replaydbg.cluster.workplace import Workplace
from replaydbg.log.reader import open_recording
from replaydbg.regressions.night import TrialSettings
from replaydbg.regressions.trial_slot import CommitTrial, TrialSlot

_SPARE = 1
"""Slots of a process beyond the number that it has used at once: where trials at two commits take turns."""


def handle(order: JsonObject, place: Workplace, cancel: threading.Event) -> JsonObject:
    """Return the verdict, with what it depends on."""
    recording = place.path(order["recording"])
    with open_recording(recording) as opened:
        opened.check_secrets()  # without a key this worker decides nothing
    checkout = checkout_of(order, place)
    rates = {recording: (order["rate"][0], order["rate"][1])} if order["rate"] is not None else {}
    how = TrialSettings(
        **checkout.question | {"taken_along": tuple(map(Path, checkout.question["taken_along"]))},
    )

    def make() -> _KeptSlot:
        slot_rates: dict[Path, tuple[int, int]] = {}
        return _KeptSlot(key, TrialSlot(how, checkout.worktrees, checkout.around, slot_rates), slot_rates)

    key = json.dumps([order["context"], order["taken"], str(checkout.worktrees.directory)])
    with _slots.taken(key, order["commit"], make) as kept:
        kept.rates.update(rates)
        kept.slot.began_ns = time.time_ns()
        found = kept.slot.run(CommitTrial(recording, Path(order["root"]), order["commit"]), cancel)
    reads = found.reads
    return {
        "state": found.verdict.state.value,
        "why": found.verdict.why,
        "seconds": found.verdict.seconds,
        "rate": kept.rates.get(recording),
        "reads": None
        if reads is None
        else {
            "inside": [list(each) for each in reads.inside],
            "outside": [[*each, state_between_machines(each)] for each in reads.outside],
            "is_whole": reads.is_whole,
        },
    }


@dataclass(frozen=True, slots=True, eq=False)
class _KeptSlot:
    """A slot between the tasks that use it: its commit is checked out and built once."""

    key: str
    """The same for all tasks that can use it."""
    slot: TrialSlot
    rates: dict[Path, tuple[int, int]]
    """Those of the slot."""


@dataclass(slots=True)
class _KeptSlots:
    """The slots of this process; used from several threads."""

    _idle: list[_KeptSlot] = field(default_factory=list)
    """Those that were used last are at the end."""
    _used: int = 0
    _most: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def taken(self, key: str, commit: str, make: Callable[[], _KeptSlot]) -> Iterator[_KeptSlot]:
        """Yield a slot for a trial at a commit; after an error it is not used again."""
        kept = self._take(key, commit)
        try:
            kept = kept or make()
            yield kept
        except BaseException:
            if kept is not None:
                kept.slot.close()
            with self._lock:
                self._used -= 1
            raise
        with self._lock:
            self._used -= 1
            self._idle.append(kept)

    def _take(self, key: str, commit: str) -> _KeptSlot | None:
        """Return the slot in which the commit is checked out, or another one if there are enough; None: make one."""
        with self._lock:
            self._used += 1
            self._most = max(self._most, self._used)
            found = next((each for each in self._idle if each.key == key and each.slot.commit == commit), None)
            while found is None and len(self._idle) + self._used > self._most + _SPARE:
                oldest = self._idle.pop(0)
                if oldest.key == key:
                    return oldest
                oldest.slot.close()
            if found is not None:
                self._idle.remove(found)
            return found


_slots = _KeptSlots()
