"""Functions of users that take part when a program is resumed: the entry point group `replaydbg.resume`.

Each entry point names a module, or another object, with any of these functions:

- `reopen(resource) -> int | None`: return a descriptor for a resource of `replaydbg.resources.kinds`, or None to leave
  it to its rule;
- `settle(call) -> DONE(value) | REDO | STOP | None`: decide a call in flight, a `CallInFlight`, or leave
  it to its rule;
- `compensate(acts)`: undo what was done outside after the moment, a list of `OutsideAct`, the newest first. It is
  called when nothing else can stop the program from going live: what it undoes would be missing.

They run in the process of `replaydbg resume`, not in the program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from replaydbg.classes import dataclass
from replaydbg.errors import CannotResume
from replaydbg.events.values import Value
from replaydbg.resources.kinds import OpenResource
from replaydbg.resume.conversation import CallInFlight
from replaydbg.resume.findings import Finding, done, repeat
from replaydbg.resume.outside_acts import OutsideAct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GROUP = "replaydbg.resume"


@dataclass(frozen=True, slots=True)
class DONE:
    """Returned by `settle`: the call was made, and returned `value`."""

    value: Value = None


class _Word:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


REDO = _Word("REDO")
"""Returned by `settle`: the call is made, again if it was made before."""
STOP = _Word("STOP")
"""Returned by `settle`: the program does not go live."""


class Hooks:
    """The functions of some objects, see above."""

    def __init__(self, recording: str, objects: Sequence[tuple[str, object]] = ()) -> None:
        """`recording` is its name, for messages; `objects` are named, too."""
        self._recording = recording
        self._objects = objects
        self._reopened: list[tuple[OpenResource, str]] = []

    @property
    def reopeners(self) -> tuple[str, ...]:
        """The names of the hooks that are asked to reopen each resource."""
        return tuple(name for name, _ in self._functions("reopen"))

    def reopened_by(self, resource: OpenResource) -> str | None:
        """Return the name of the hook that had a descriptor for a resource; None: none had, or was asked."""
        return next((name for each, name in self._reopened if each is resource), None)

    def reopen(self, resource: OpenResource) -> int | None:
        """Return the first descriptor that a hook has for a resource."""
        for name, function in self._functions("reopen"):
            fd = self._call(name, function, resource)
            if fd is not None:
                if type(fd) is not int or not _is_open(fd):
                    which = f"for descriptor {min(resource.handle.numbers)}"
                    reason = f"reopen of {name} returned {fd!r}, which is not an open descriptor, {which}"
                    raise CannotResume(self._recording, reason)
                self._reopened.append((resource, name))
                return fd
        return None

    def settle(self, call: CallInFlight) -> Finding | None:
        """Return what the first hook decides that decides anything."""
        for name, function in self._functions("settle"):
            decision = self._call(name, function, call)
            if decision is STOP:
                raise CannotResume(self._recording, f"settle of {name} refused {call.call}")
            if decision is REDO:
                return repeat(call, f"will be made ({name})")
            if isinstance(decision, DONE):
                return done(call, f"not made again ({name})", decision.value)
            if decision is not None:
                reason = f"settle of {name} returned {decision!r}, which is not DONE(value), REDO, STOP or None"
                raise CannotResume(self._recording, reason)
        return None

    @property
    def compensators(self) -> tuple[str, ...]:
        """The names of the hooks that undo acts."""
        return tuple(name for name, _ in self._functions("compensate"))

    def compensate(self, acts: Sequence[OutsideAct]) -> None:
        """Let all hooks undo acts, the newest first."""
        for name, function in self._functions("compensate"):
            self._call(name, function, list(acts))

    def _functions(self, which: str) -> list[tuple[str, Callable[..., Any]]]:
        found = [(name, getattr(each, which, None)) for name, each in self._objects]
        return [(name, function) for name, function in found if function is not None]

    def _call(self, name: str, function: Callable[..., Any], argument: object) -> Any:
        try:
            return function(argument)
        except CannotResume:
            raise
        except (Exception, SystemExit) as error:  # it is a user's function, and its failure stops the resumption
            reason = f"{function.__name__} of {name} raised {type(error).__name__}: {error}"
            raise CannotResume(self._recording, reason) from error


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except (OSError, OverflowError):
        return False
    return True


def installed_hooks(recording: str) -> Hooks:
    """Return the hooks of installed packages. Raises CannotResume for one that cannot be imported."""
    # Imported here: it takes 30 ms.
    from importlib.metadata import entry_points

    found: list[tuple[str, object]] = []
    for point in entry_points(group=GROUP):
        try:
            found.append((point.name, point.load()))
        except (Exception, SystemExit) as error:  # whatever its import raises
            reason = f"the hook {point.value} cannot be loaded: {type(error).__name__}: {error}"
            raise CannotResume(recording, reason) from error
    return Hooks(recording, found)
