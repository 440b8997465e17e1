"""The part of an event log that a test gives to the program again: no interpreter's start, and nothing of pytest."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from replaydbg.errors import Corrupt
from replaydbg.events.records import Control, ControlKind, Entry, Event
from replaydbg.installed import is_installed
from replaydbg.log.allowance import load_json
from replaydbg.log.reader import Recording

_MOST_STARTING = 5_000
"""The most entries among which the end of the interpreter's start is searched for: it has some 70 events."""
_SITE = ("<frozen site>", "/site.py")
_PYTEST = ("/site-packages/_pytest/", "/site-packages/pluggy/", "/site-packages/pytest", "/pytest_plugin/")


def recorded_test(recording: Recording) -> dict[str, object] | None:
    """Return the test of pytest that a recording is of; None: of none. Raises Corrupt."""
    raw: object = recording.end.raw.get("test") if recording.end is not None else None
    if raw is None:
        return None
    failure = raw.get("failure") if isinstance(raw, dict) else ()
    if not isinstance(raw, dict) or not isinstance(failure, dict | None):
        raise Corrupt(str(recording.path), "its test is not valid")
    return raw


class ProgramPart:
    """Which events of a log are the program's, or a test's."""

    def __init__(self, recording: Recording, test: dict[str, object] | None) -> None:
        """Read the log as far as that is needed."""
        self._recording, self._test = recording, test
        self._is_begun = False
        self.first, self.last = 1, None
        """The first event; the last one, None: the log's last."""
        self.has_earlier_inputs = False
        """Whether code of the project read files or the time before the test began: in imports, or other tests."""
        self.random_state: object = None
        """The state of the module `random` when the test began; None: unknown, or no test."""
        if test is None:
            self.first = _start(recording) + 1
            return
        failure = test.get("failure")
        ended = failure.get("event") if isinstance(failure, dict) else None
        self.last = ended if isinstance(ended, int) and ended > 0 else None
        for entry in recording.events(last=self.last):
            if isinstance(entry, Control) and entry.kind is ControlKind.MARK:
                self._mark(entry, test.get("nodeid"))
            elif isinstance(entry, Event) and not self._is_begun and _is_input_of_project(entry):
                self.has_earlier_inputs = True

    def entries(self) -> Iterator[Entry]:
        """Yield the entries, without pytest's own."""
        for entry in self._recording.events(first=self.first, last=self.last):
            if self._test is None or not is_of_pytest(entry):
                yield entry

    def _mark(self, mark: Control, node: object) -> None:
        try:
            data = load_json((mark.name or "").encode("utf-8", "surrogatepass"))
        except ValueError:
            return  # the program's own
        do = data.get("do") if isinstance(data, dict) else None
        if do == "item":
            self.random_state = _state(data.get("random")) or self.random_state
        elif do == "begin" and data.get("node") == node:
            self.first = mark.after + 1
            self._is_begun = True


def _is_input_of_project(event: Event) -> bool:
    """Whether code that is not installed opened a file that is no source, or asked for the time."""
    file = event.site.file
    if file is None or file.startswith("<") or is_installed(file) or is_of_pytest(event):
        return False
    if event.gate not in ("_io.FileIO.__init__", "posix.open"):
        return event.gate.startswith(("time.", "_datetime.", "posix.urandom"))
    path = event.arguments[0] if event.arguments else None
    return isinstance(path, str) and not path.endswith((".py", ".pyc")) and not path.startswith("/dev/")


def _state(state: object) -> object:
    """Return a state of `random` as it is in a mark; None: it is none."""
    if not isinstance(state, list) or len(state) != 3 or not isinstance(state[1], list):
        return None
    numbers = state[1]
    is_sound = len(numbers) == 625 and all(isinstance(each, int) and 0 <= each < 1 << 32 for each in numbers)
    is_sound = is_sound and isinstance(state[0], int) and isinstance(state[2], float | None)
    return [state[0], numbers, state[2]] if is_sound else None


def is_of_pytest(entry: Entry) -> bool:
    """Whether a call was made by pytest itself."""
    file = entry.site.file if isinstance(entry, Event) else None
    return file is not None and any(part in file for part in _PYTEST)


def _start(recording: Recording) -> int:
    """Return the number of the last event of the interpreter's start: the module `site` runs last."""
    start = 0
    for entry in itertools.islice(recording.events(controls=False), _MOST_STARTING):
        file = entry.site.file if isinstance(entry, Event) else None
        if isinstance(entry, Event) and file is not None and file.endswith(_SITE):
            start = entry.number
        elif file is not None and not file.startswith("<") and not is_installed(file):
            break  # the program runs
    return start
