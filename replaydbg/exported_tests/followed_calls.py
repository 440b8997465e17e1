"""Collect the answers of clocks and of sources of randomness."""

from __future__ import annotations

from pathlib import PurePath

from replaydbg.events.records import Event
from replaydbg.events.values import StructSequence
from replaydbg.exported_tests.recorded_inputs import FoundInputs
from replaydbg.installed import is_standard

CLOCKS = {
    f"time.{name}"
    for name in (
        *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
        *("process_time", "process_time_ns", "thread_time", "thread_time_ns"),
    )
}
NOW = {"time.localtime": 0, "time.gmtime": 0, "time.ctime": 0, "time.asctime": 0, "time.strftime": 1}
"""Functions that use the current time if they get this many arguments."""
WAITING = ("threading", "queue", "selectors", "subprocess", "asyncio", "concurrent", "multiprocessing")
"""Modules of the standard library that wait by clocks: they need the real time."""
NOW_OF_DATETIME = "_datetime.datetime.now"
_DRAWS = {"posix.urandom": "os.urandom", "posix.getrandom": "os.getrandom"}
_SEED = "_random.Random.seed"
_LEFT = {
    "time.sleep": "",
    "_uuid.generate_time_safe": "uuid.uuid1, which asks the C library",
    "_ssl.RAND_bytes": "ssl.RAND_bytes",
}


class TimeAndChance:
    """Follows the calls for time and randomness."""

    def __init__(self, found: FoundInputs) -> None:
        self._found = found

    def event(self, event: Event) -> bool:
        """Follow a call; return whether it is one of these."""
        name = event.gate
        if event.raised:
            return name in CLOCKS or name in NOW
        if name in CLOCKS:
            if not _waits(event):
                self._answer(name, event.outcome)
        elif name in NOW and len(event.arguments or ()) == NOW[name]:
            value = event.outcome
            self._answer(name, tuple(value.values) if isinstance(value, StructSequence) else value)
        elif name == NOW_OF_DATETIME:
            self._answer("datetime.now", event.outcome)
        elif name in _DRAWS and isinstance(event.outcome, bytes):
            self._answer(_DRAWS[name], event.outcome)
        elif name == _SEED:
            if isinstance(event.outcome, bytes):
                self._found.seeds.append(event.outcome)
        elif name in _LEFT:
            if _LEFT[name]:
                self._found.gaps[_LEFT[name]] = None
        else:
            return name in NOW
        return True

    def _answer(self, name: str, value: object) -> None:
        if isinstance(value, int | float | str | bytes | tuple):
            self._found.answers.setdefault(name, []).append(value)


def _waits(event: Event) -> bool:
    """Whether a module of the standard library that waits asked for the time."""
    file = event.site.file or ""
    return is_standard(file) and any(each in WAITING for each in (PurePath(file).stem, *PurePath(file).parts[-2:-1]))
