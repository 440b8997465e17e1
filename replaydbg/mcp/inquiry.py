"""Answers questions: it finds what a question is about, and turns every error into an answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from replaydbg.config import load_settings
from replaydbg.debugger.session_results import WorkProgress
from replaydbg.errors import Cancelled, EngineLost, ForgedMessage, ReplaydbgError
from replaydbg.mcp import command_questions, failure_question, moment_questions, run_questions
from replaydbg.mcp.answers import AgentAnswer, as_text
from replaydbg.mcp.given_arguments import checked_arguments
from replaydbg.mcp.open_recordings import OpenRecording, OpenRecordings
from replaydbg.mcp.tool_table import Tool
from replaydbg.store.directory import Store

Handler = Callable[[OpenRecording, AgentAnswer, dict[str, Any]], None]

HANDLERS: dict[str, Handler] = {
    "failure": failure_question.failure,
    "why": moment_questions.why,
    "look": moment_questions.look,
    "watch": run_questions.watch,
    "log": run_questions.log,
    "bisect": run_questions.bisect,
    "check": run_questions.check,
}
"""Questions about an open recording: each fills an answer. They raise ReplaydbgError."""


RESULT = "rec.rdbg"
"""The recording in the directory of a test's result."""


class Inquiry:
    """All questions of a client. For one thread."""

    def __init__(self, check: Callable[[], None], progressed: Callable[[WorkProgress], None]) -> None:
        """`check` and `progressed` raise Cancelled if the question is to end."""
        self._check, self._progressed = check, progressed
        self._store = Store(load_settings({}).store)
        self._recordings = OpenRecordings(check, progressed)

    def close(self) -> None:
        """End all processes."""
        self._recordings.close()

    def call(self, tool: Tool, given: dict[str, Any]) -> dict[str, object]:
        """Return the result of a tool for arguments that may be wrong. Raises Cancelled."""
        answer = AgentAnswer()
        try:
            self._fill(answer, tool.name, checked_arguments(tool, given))
        except Cancelled:
            raise
        except (ReplaydbgError, RecursionError, MemoryError, OSError) as error:
            answer.problem = str(error) or type(error).__name__
        facts = answer.fitted()
        return {
            "content": [{"type": "text", "text": as_text(facts)}],
            "structuredContent": facts,
            "isError": bool(answer.problem),
        }

    def _fill(self, answer: AgentAnswer, name: str, given: dict[str, Any]) -> None:
        if name == "recordings":
            command_questions.recordings(self._store, answer, given)
            return
        if name == "run":
            command_questions.run(answer, given, self._check, self._progressed)
            return
        path = self._resolved(given.get("recording", "latest"))
        # "latest" may be another one for the next question.
        given["recording"] = answer.recording = self._store.name_of(path)
        if given.get("current_source"):
            command_questions.check_source(answer, given, self._check, self._progressed)
            return
        found = self._opened(path, answer)
        try:
            HANDLERS[name](found, answer, given)
        except (EngineLost, ForgedMessage):
            self._recordings.drop(found)
            raise
        finally:
            answer.left_out += found.view.group.take_notices()

    def _resolved(self, name: str) -> Path:
        """Return the recording of a name, also of a directory with a test's result. Raises NoSuchRecording."""
        result = Path(name or "-") / RESULT
        return result if result.is_file() else self._store.resolve(name)

    def _opened(self, path: Path, answer: AgentAnswer) -> OpenRecording:
        found = self._recordings.at(path, answer.recording)
        answer.add("remarks", list(found.remarks))
        return found
