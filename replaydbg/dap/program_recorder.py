"""Record the program of a `launch`, in another process, and pass on what it prints.

The command `record` does it: a recorder waits in the main thread of its process for signals and for the program. The
last that comes on its standard error is a summary in JSON, or on its standard output an error.
"""

from __future__ import annotations

import codecs
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from replaydbg.dap.wire.editor_stream import EditorStream
from replaydbg.dap.wire.request_arguments import RequestArguments
from replaydbg.debugger.session_results import WorkProgress
from replaydbg.errors import CannotRecord, UsageError

EVERY = 0.05
"""Seconds between two looks whether the request was cancelled."""

PATIENCE = 10.0
"""Seconds that a program that is ended has for its own end, and its recording to be sealed."""

_SUMMARY = '{"schema_version"'


class ProgramRecorder:
    """Records one run of a program."""

    def __init__(
        self, arguments: RequestArguments, stream: EditorStream, progressed: Callable[[WorkProgress], None]
    ) -> None:
        """`arguments`: those of `launch`. `progressed` raises Cancelled if it is to be given up."""
        self._arguments, self._stream, self._progressed = arguments, stream, progressed
        self._summaries: dict[str, str] = {}
        self._last = ""

    def record(self) -> Path:
        """Run the program to its end; return the recording. Raises UsageError, CannotRecord and Cancelled."""
        command, folder = self._command(), self._arguments.text("cwd") or None
        if folder is not None and not Path(folder).is_dir():
            raise UsageError(f"cwd is not a directory: {folder!r}.")
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise UsageError(f"The program cannot be started: {error}.") from None
        assert process.stdout is not None and process.stderr is not None
        readers = [
            threading.Thread(target=self._pass_on, args=(process.stdout, "stdout"), daemon=True),
            threading.Thread(target=self._pass_on, args=(process.stderr, "stderr"), daemon=True),
        ]
        for each in readers:
            each.start()
        self._wait(process)
        for each in readers:
            each.join(PATIENCE)  # a child that outlives the program may keep them open
        return self._recorded(process.returncode)

    def _command(self) -> list[str]:
        given = self._arguments
        names = [each for each in ("program", "module", "code") if given.text(each)]
        if len(names) != 1:
            raise UsageError("launch needs one of 'program', 'module' and 'code'.")
        program = {
            "program": [given.text("program")],
            "module": ["-m", given.text("module")],
            "code": ["-c", given.text("code")],
        }[names[0]]
        options = [*(["-o", given.text("output")] if given.text("output") else []), *given.texts("recordOptions")]
        python = [given.text("python")] if given.text("python") else []
        record = [sys.executable, "-m", "replaydbg", "record", "--json", *options]
        return [*record, "--", *python, *program, *given.texts("args")]

    def _environment(self) -> dict[str, str]:
        found = dict(os.environ)
        for name, value in self._arguments.mapping("env").items():
            if value is None:
                found.pop(name, None)
            else:
                found[name] = value
        return found

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        began = time.monotonic()
        try:
            while True:
                try:
                    process.wait(EVERY)
                    return
                except subprocess.TimeoutExpired:
                    self._progressed(WorkProgress("recording the program", 0.0, time.monotonic() - began))
        finally:
            if process.poll() is None:
                self._end(process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        # The recorder passes it on to the program, and seals what there is.
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _pass_on(self, pipe: IO[bytes], category: str) -> None:
        """Send what is read, as it comes; but not the summary, or the error in its place."""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        held = ""
        while data := os.read(pipe.fileno(), 65536):
            held += decode(data)
            at = held.rfind(_SUMMARY)
            now, held = (held, "") if at < 0 else (held[:at], held[at:])
            self._print(now, category)
        self._summaries[category] = held

    def _print(self, text: str, category: str) -> None:
        if text:
            self._last = text
            self._stream.send_event("output", {"category": category, "output": text})

    def _recorded(self, status: int) -> Path:
        facts = {category: _facts(text) for category, text in self._summaries.items()}
        for category, text in self._summaries.items():
            if not facts[category]:
                self._print(text, category)
        error = facts.get("stdout", {}).get("error")
        if isinstance(error, dict):
            raise UsageError(str(error.get("message")))
        path = facts.get("stderr", {}).get("path")
        if not isinstance(path, str):
            reason = self._last.strip().rpartition("\n")[2] or f"the recorder exited with code {status}"
            raise CannotRecord(self._arguments.text("output") or "the store", reason)
        return Path(self._arguments.text("cwd") or ".") / path


def _facts(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}  # the program has printed it
    return found if isinstance(found, dict) else {}
