"""Open what `launch` and `attach` name: a program, which is recorded first, or a recording."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from replaydbg.config import load_settings
from replaydbg.dap.debuggee import OpenedRecording
from replaydbg.dap.program_recorder import ProgramRecorder
from replaydbg.dap.wire.editor_requests import EditorRequest
from replaydbg.dap.wire.editor_stream import EditorStream
from replaydbg.dap.wire.request_arguments import RequestArguments
from replaydbg.debugger import Session
from replaydbg.debugger.first_pass.recorded_test import test_of
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.engine.process_memory import MemoryBudget
from replaydbg.errors import NoSuchRecording, ReplaydbgError, UsageError
from replaydbg.groups.group_session import GroupSession
from replaydbg.log.files import held
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.origin import is_own
from replaydbg.native import check_core
from replaydbg.render.replay_text import foreign_text

if TYPE_CHECKING:
    from replaydbg.debugger.session_results import WorkProgress

RESULT = "rec.rdbg"
"""The recording in the directory of a test's result."""

RESULTS = "test-results"
"""Where the pytest plugin keeps results if nothing else is set."""


def open_requested(
    request: EditorRequest,
    resolve: Callable[[str], Path],
    stream: EditorStream,
    progressed: Callable[[WorkProgress], None],
) -> OpenedRecording:
    """Open what a request names, and go to the moment that it wants.

    `progressed` raises Cancelled if it is to be given up. Raises ReplaydbgError and Cancelled.
    """
    check_core()
    arguments = request.arguments
    if request.command == "launch":
        path = ProgramRecorder(arguments, stream, progressed).record()
    else:
        path = _recording_named(arguments, resolve)
    opened = _opened(path, arguments, stream, progressed, is_output_shown=request.command == "launch")
    try:
        _go_to_first_moment(opened.session, arguments)
    except BaseException:
        opened.close()
        raise
    return opened


def _opened(
    path: Path,
    arguments: RequestArguments,
    stream: EditorStream,
    progressed: Callable[[WorkProgress], None],
    *,
    is_output_shown: bool,
) -> OpenedRecording:
    mappings = tuple(
        (each.needed_text("localRoot"), each.needed_text("remoteRoot")) for each in arguments.objects("pathMappings")
    )
    settings = load_settings({"session_memory": arguments.text("memory") or None})
    opens = partial(
        Session,
        progress=progressed,
        current_source=arguments.flag("currentSource"),
        memory=MemoryBudget(settings.session_memory),
    )
    with held(path):  # from the first look at it until the session has it open, `gc` must not remove it
        if not is_own(path):
            _warn(path, arguments.text("recording") or path.name, stream)
        session = opens(path, ahead=True)
    return OpenedRecording(
        GroupSession(session, opens),
        session,
        opens,
        OwnCode(settings.my_code),
        arguments.flag("justMyCode", settings.just_my_code),
        mappings,
        is_output_shown,
    )


def _warn(path: Path, name: str, stream: EditorStream) -> None:
    text = foreign_text(path, name)
    if text:
        stream.send_event("output", {"category": "important", "output": f"{text}\n"})


def _go_to_first_moment(session: Session, arguments: RequestArguments) -> None:
    if arguments.text("at"):
        session.seek(arguments.text("at"))
    elif arguments.flag("stopOnEntry"):
        session.seek(session.first_own, why="entry")


# ---- which recording ----


def _recording_named(arguments: RequestArguments, resolve: Callable[[str], Path]) -> Path:
    """Return the recording that `attach` names. Raises UsageError and NoSuchRecording."""
    if arguments.text("test"):
        return _recording_of_test(arguments)
    name = arguments.needed_text("recording")
    folder = Path(arguments.text("cwd") or ".")
    result = folder / name / RESULT
    if result.exists():
        return result
    try:
        return resolve(name)
    except NoSuchRecording:
        if not arguments.text("cwd"):
            raise
        return resolve(str(folder / name))


def _recording_of_test(arguments: RequestArguments) -> Path:
    """Return the newest recording of a test below a directory of results, by the test's name."""
    wanted = arguments.text("test")
    folder = Path(arguments.text("cwd") or ".") / (arguments.text("results") or RESULTS)
    found = [each for each in folder.glob(f"**/{RESULT}") if _is_of_test(each, wanted)]
    if not found:
        raise UsageError(f"No recording of the test {wanted!r} in {str(folder)!r}.")
    return max(found, key=lambda each: each.stat().st_mtime)


def _is_of_test(path: Path, wanted: str) -> bool:
    try:
        with open_recording(path) as recording:
            test = test_of(recording)
    except ReplaydbgError:
        return False  # one that cannot be read is not what is looked for
    return test is not None and (test.nodeid == wanted or test.nodeid.endswith(f"/{wanted}"))
