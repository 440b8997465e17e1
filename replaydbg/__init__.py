"""replaydbg: record a run of a Python program once, then replay it exactly, as often as you like."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__version__ = "0.1.0"


def snapshot(name: str = "", *, quiesce: bool = False) -> None:
    """Store a snapshot of the program's objects in its recording, called `name`; do nothing outside a recording.

    A copy of the process takes it while the program goes on. With `quiesce`, the callbacks of `quiesce()` run first,
    and the snapshot's reason is `consistent`, or `inconsistent` if one of them has failed.
    """
    if not quiesce or not _is_recorded():
        _take_snapshot(name)
        return
    undo, problem = _pause()
    try:
        _take_snapshot(name, not problem)
    finally:
        _go_on(undo)
    if problem:
        sys.audit("replaydbg.problem", [], f"the snapshot {name!r} is not consistent: {problem}")


def _take_snapshot(*arguments: object) -> None:
    # The audit event reaches the recorder; nothing else of replaydbg is in its process. A debugger finds the moment of
    # a snapshot by the first line of this function, so there is only one.
    sys.audit("replaydbg.snapshot", *arguments)


def cut(name: str = "") -> None:
    """Take a live cut named `name` of the processes that are recorded together; do nothing outside of a group.

    It is a consistent global state: for each process how far it had gone, and for each channel what was in flight. No
    process is stopped, and nothing is sent. `replaydbg cut GROUP --live` lists them. The name is cut off after 200
    bytes of UTF-8.
    """
    sys.audit("replaydbg.cut", name)


def key() -> str:
    """Return an idempotency key for the next outgoing call: a new one for each call, and in each run of the program.

    A replay, and a resumed program that repeats the call, get the same key. It consists of the run's id, the thread's
    number and the event's, so a program that goes live at an earlier event and then takes another path can use a key
    that an earlier request had. Outside a recording it is random.
    """
    answer: list[str] = []
    sys.audit("replaydbg.key", answer)
    return answer[0] if answer else os.urandom(16).hex()


def moment(kind: str = "", text: str = "") -> str:
    """Return this moment of the recording, such as `run-12:4711:0`, or "" outside a recording.

    Written beside what a program logs, it leads back there: `replaydbg seek run-12 4711:0`. `kind` and `text` are noted
    with it, so that `replaydbg seek run-12 "@KIND:TEXT"` finds it by a part of the text. `kind` is one word; of
    `text`, the first 1,000 characters are noted. `replaydbg.observe` has adapters for logging and tracing libraries.
    """
    answer: list[Any] = []
    sys.audit("replaydbg.moment", answer, str(kind), str(text)[:1000])
    place: str = answer[0][0] if answer else ""
    return place


def quiesce(callback: "Callable[[], Any]") -> "Callable[[], Any]":
    """Let `callback` run before each checkpoint, and before snapshots taken with `quiesce=True`; return it.

    It brings the program to a consistent state: it writes what is buffered, or stops accepting requests. If it returns
    a function, that is called after a snapshot, or if no checkpoint is taken, and undoes it: after a checkpoint the
    program starts anew. Callbacks run in the calling thread, in the order in which they were registered, as a part of
    the recorded program; what undoes them runs in the opposite order.
    """
    _callbacks.append(callback)
    return callback


def checkpoint(
    load: "Callable[[bytes], object]", save: "Callable[[], bytes]", *, every_events: int = 0, every_bytes: int = 0
) -> None:
    """Let the program go on from its own saved state, with a new log, once its log is long; else do nothing.

    If the log has `every_events` events or `every_bytes` bytes (with neither: by the settings `checkpoint_events` and
    `checkpoint_size`), `save()` returns the state, which is written to the disk; then the process executes the program
    anew, and the first call there passes the bytes to `load`. So a replay and a resumption begin at the last
    checkpoint. This function does not return then: threads end, files are closed without what is buffered, and no
    `atexit` function runs. Does nothing outside a recording. Raises ValueError for a negative number, TypeError if
    `save()` does not return bytes, and what `save` and `load` raise.
    """
    for name, value in (("every_events", every_events), ("every_bytes", every_bytes)):
        if type(value) is not int or value < 0:
            raise ValueError(f"{name} must be an integer of at least 0 (got {value!r})")
    answer: list[Any] = []
    sys.audit("replaydbg.checkpoint", answer, every_events, every_bytes)
    if not answer or answer[0] is False:
        return
    if type(answer[0]) is bytes:
        load(answer[0])
        return
    undo, problem = _pause()
    try:
        if problem:
            sys.audit("replaydbg.problem", [], f"no checkpoint was taken: {problem}")
            return
        saved = save()
        if type(saved) is not bytes:
            raise TypeError(f"save() must return bytes (got {type(saved).__name__})")
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        sys.audit("replaydbg.continue", [], saved)  # it returns only if the program cannot go on as a new one
    finally:
        _go_on(undo)


_callbacks: "list[Callable[[], Any]]" = []
"""The arguments of `quiesce`."""


def _is_recorded() -> bool:
    answer: list[bool] = []
    sys.audit("replaydbg.recorded", answer)
    return bool(answer)


def _pause() -> "tuple[list[Callable[[], Any]], str]":
    """Call the callbacks of `quiesce`; return what undoes them, and why the program is not consistent, or ""."""
    undo: list[Callable[[], Any]] = []
    for callback in _callbacks:
        try:
            done = callback()
        except Exception as error:  # noqa: BLE001 - whatever the program's callback raises is reported
            return undo, f"the callback {_failure(callback, error)}"
        if callable(done):
            undo.append(done)
    return undo, ""


def _go_on(undo: "list[Callable[[], Any]]") -> None:
    """Call what undoes callbacks of `quiesce`, the last one first, also if one of them fails."""
    for callback in reversed(undo):
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - as in _pause
            sys.audit("replaydbg.problem", [], f"a callback was not undone: {_failure(callback, error)}")


def _failure(callback: "Callable[[], Any]", error: Exception) -> str:
    name = getattr(callback, "__qualname__", type(callback).__name__)
    return f"{name!r} raised {type(error).__name__}: {error}"


invariants: "list[tuple[str, Any]]" = []
"""The arguments of `check`: a name, and an expression or a function."""


def check(what: "Any", name: str = "") -> "Any":
    """Check that `what` holds at each snapshot of a recorded run; return it. Does nothing where no snapshots are taken.

    An expression (str) is evaluated in the main module, and holds if it is true. A function, called without arguments,
    fails by returning False or by raising AssertionError; so it can be decorated with this. Both run in a copy of the
    process when it has taken a snapshot: what they change stays there, and input or output in them raises.
    """
    invariants.append((name or (what if isinstance(what, str) else getattr(what, "__qualname__", repr(what))), what))
    return what


def load(path: "str | os.PathLike[str]") -> "Any":
    """Return the object that `replaydbg export` took out of a recording. As with any pickle, code in the file runs.

    A part that could not be exported is replaced by a `replaydbg.debugger.exported.Missing`. Raises UsageError if
    `path` is not such a file.
    """
    # Imported here: a recorded program that imports replaydbg for its snapshots pays for nothing else.
    from replaydbg.debugger.exported import load

    return load(path)
