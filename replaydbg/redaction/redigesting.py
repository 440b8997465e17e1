"""Replay a recording whose secrets were replaced, and compute the digests of what leaves the program anew."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from replaydbg.errors import CannotRedact, Divergence
from replaydbg.log.reader import Recording, open_recording
from replaydbg.replay.launcher import UnpackedLogs, prepare, run_started, unpack_logs
from replaydbg.replay.result import ReplayResult


def redigested(path: Path, name: str) -> bytes:
    """Return the event log of the recording at `path` with the digests of a replay.

    Raises CannotRedact, with the line, if the replay differs in anything else: then the run depends on a secret.
    """
    with open_recording(path) as recording, ExitStack() as stack:
        parts = unpack_logs(recording, stack)
        result = _replayed(recording, parts, name, stack)
        if result.divergence is not None:
            divergence = result.divergence
            reason = f"its run depends on the value of a secret: at event {divergence.event}, {divergence.observed}"
            raise CannotRedact(name, reason, _line(divergence))
        file = parts.files["log"]
        file.seek(0)
        return file.read()


def _line(divergence: Divergence) -> str:
    """Return the innermost line of the program, or else of a library, at which a replay differed."""
    own = [each for each in divergence.stack if "<frozen" not in each and "/lib/python" not in each]
    return own[-1].strip() if own else divergence.where or f"after {divergence.last_agreeing}"


def _replayed(recording: Recording, parts: UnpackedLogs, name: str, stack: ExitStack) -> ReplayResult:
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    stack.callback(os.close, null)
    start = prepare(recording, stack, {"redigests": True}, stdout=null, stderr=null, parts=parts)
    return run_started(recording, start, [null, null], name)
