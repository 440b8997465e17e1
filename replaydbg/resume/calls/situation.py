"""The state of the program at the moment at which it goes live, as the rules for calls in flight need it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from replaydbg.classes import dataclass, field
from replaydbg.events.values import Value
from replaydbg.resources.kinds import OpenedDirectory, OpenedFile, OpenResource, Resources, Unknown
from replaydbg.resume.calls.name_acts import NameState, last_component
from replaydbg.resume.conversation import CallInFlight
from replaydbg.resume.findings import Finding, repeat, unknown


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of the program at the moment at which it goes live."""

    resources: Resources
    last_ns: int
    """When the last event happened, at the earliest: nanoseconds since the epoch."""
    is_cut_off: bool = False
    """Whether what files have after their recorded ends is cut off, so that no write in flight was made."""
    appended: Mapping[str, Sequence[CallInFlight]] = field(default_factory=dict)
    """In a group: the writes in flight of all its processes to files that they append to, by path."""
    truncated: frozenset[str] = frozenset()
    """In a group: the files of which only what is in the logs is after their recorded ends, and is cut off."""
    begun_ns: Mapping[int, int] = field(default_factory=dict)
    """By thread, when its call in flight began, at the earliest: nanoseconds since the epoch."""
    names: Mapping[str, NameState] = field(default_factory=dict)
    """The program's own last act on each name of a file, by its path as the program gave it."""

    def opened(self, number: int) -> OpenResource | None:
        """Return what a descriptor refers to; None: not known."""
        return self.resources.by_number().get(number)

    def path(self, value: object, base: object = None) -> Path | None:
        """Return a path of the program as an absolute one; None: not known.

        It is relative to the descriptor `base` of a directory; None: to the working directory.
        """
        if not isinstance(value, str | bytes):
            return None
        path = Path(os.fsdecode(value))
        if path.is_absolute():
            return path
        if base is not None:
            opened = self.opened(base) if isinstance(base, int) else None
            if isinstance(opened, OpenedDirectory | OpenedFile) and isinstance(opened.absolute, str):
                return Path(opened.absolute) / path
            return None
        return None if isinstance(self.resources.cwd, Unknown) else Path(self.resources.cwd) / path

    def may_be_new(self, found: os.stat_result) -> bool:
        """Whether a file may have been made or changed after the last event."""
        return found.st_ctime_ns >= self.last_ns

    def is_by(self, call: CallInFlight, changed_ns: int) -> bool | None:
        """Return whether a call in flight made a change; None: it is not known when the call began.

        `changed_ns`: when the change was made, nanoseconds since the epoch.
        """
        begun = self.begun_ns.get(call.thread)
        if begun is None and changed_ns >= self.last_ns:
            return None
        return begun is not None and changed_ns >= begun

    def last_act(self, path: Path) -> NameState | None:
        """Return the program's own last act on a path; None: it is not known."""
        acts = [
            state for name, state in self.names.items() if last_component(name) == path.name and self.path(name) == path
        ]
        return max(acts, key=lambda state: state.time_ns, default=None)

    def is_recent(self, act: NameState, call: CallInFlight) -> bool:
        """Whether time stamps of files do not tell an act of the program from its call in flight."""
        return act.time_ns >= self.begun_ns.get(call.thread, self.last_ns)

    def has_changed(self, directory: Path, call: CallInFlight) -> bool:
        """Whether the program itself made or removed other names in a directory right before a call in flight."""
        recent = (self.path(name) for name, state in self.names.items() if self.is_recent(state, call))
        return any(path is not None and path.parent == directory for path in recent)


def call_argument(call: CallInFlight, index: int, name: str = "") -> Value:
    """Return an argument by its index, or the keyword argument `name`; None: it was not given."""
    if name and name in call.keywords:
        return call.keywords[name]
    return call.args[index] if index < len(call.args) else None


def harmless(call: CallInFlight, situation: Situation) -> Finding:
    """Return the finding for a call that may be made twice."""
    return repeat(call, "making it twice does no harm")


def not_known(call: CallInFlight, situation: Situation) -> Finding:
    """Return the finding for a call that the user has to decide about."""
    return unknown(call, "nothing shows whether it was made")
