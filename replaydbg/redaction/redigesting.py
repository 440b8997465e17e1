"""Replay a recording whose secrets were replaced, and compute the digests of what goes in and out anew."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from replaydbg.classes import NamedTuple
from replaydbg.errors import CannotRedact
from replaydbg.log.reader import Recording, open_recording
from replaydbg.log.transfers import SECTION as TRANSFERS
from replaydbg.redaction.lines import line_of_divergence
from replaydbg.redaction.same_end import ReplayedEnd, is_same_result
from replaydbg.redaction.told import read_end
from replaydbg.redaction.transfer_digests import with_new_digests, write_wanted
from replaydbg.replay.launcher import inheritable, prepare, replay, run_started
from replaydbg.replay.result import ReplayResult
from replaydbg.replay.unpacked_logs import UnpackedLogs, unpack_logs
from replaydbg.secrets.pseudonyms import Pseudonyms


class Redigested(NamedTuple):
    """What the replay of a copy has made."""

    sections: dict[str, bytes]
    """Those that have digests, with those of the replay."""
    ended: ReplayedEnd
    """How it ended."""


def tell_output(recording: Recording, name: str, told: BinaryIO, pseudonyms: Pseudonyms) -> ReplayedEnd:
    """Replay the original, and let it write into `told` what leaves the program.

    Return how it ended, with pseudonyms. Raises CannotRedact if it differs.
    """
    with ExitStack() as stack:
        parts = unpack_logs(recording, stack)
        more: dict[str, object] = {"told_fd": inheritable(stack, told.fileno())}
        result = _replayed(recording, parts, name, more, stack)
    if result.divergence is not None:
        where = line_of_divergence(result.divergence, read_end(told), recording)
        raise CannotRedact(name, f"it does not replay: {result.divergence.observed}", where)
    return ReplayedEnd(result, read_end(told, pseudonyms))


def redigested(path: Path, name: str, told: BinaryIO) -> Redigested:
    """Replay the recording at `path`, and return its sections that have digests, with those of the replay.

    What leaves the program in the replay is written into `told`. Raises CannotRedact, with the line, if the replay
    differs in anything else: then the run depends on a secret.
    """
    with open_recording(path) as recording, ExitStack() as stack:
        parts = unpack_logs(recording, stack)
        transfers = b"".join(recording.pieces(TRANSFERS))
        wanted = stack.enter_context(os.fdopen(os.memfd_create("replaydbg-digests"), "w+b"))
        more: dict[str, object] = {"redigests": True, "told_fd": inheritable(stack, told.fileno())}
        if write_wanted(transfers, wanted):
            more["redigest_fd"] = inheritable(stack, wanted.fileno())
        result = _replayed(recording, parts, name, more, stack)
        end = read_end(told)
        if result.divergence is not None:
            divergence = result.divergence
            reason = f"its run depends on the value of a secret: at event {divergence.event}, {divergence.observed}"
            raise CannotRedact(name, reason, line_of_divergence(divergence, end, recording))
        file = parts.files["log"]
        file.seek(0)
        sections = {"log": file.read()} | ({TRANSFERS: with_new_digests(transfers, wanted)} if transfers else {})
        return Redigested(sections, ReplayedEnd(result, end))


def agreeing_events(path: Path, name: str, ended: ReplayedEnd) -> int:
    """Replay the copy at `path`, and return the number of its events.

    Raises CannotRedact if they differ, or if it does not come to the end of an earlier replay.
    """
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        result = replay(path, name=name, stdout=null, stderr=null)
    finally:
        os.close(null)
    if result.divergence is not None:
        reason = f"two replays of the copy differ: {result.divergence.observed}"
        raise CannotRedact(name, reason, result.divergence.where)
    if not is_same_result(result, ended.result):
        raise CannotRedact(name, "two replays of the copy end differently", ended.end.place if ended.end else "")
    return result.events


def _replayed(
    recording: Recording, parts: UnpackedLogs, name: str, more: dict[str, object], stack: ExitStack
) -> ReplayResult:
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    stack.callback(os.close, null)
    start = prepare(recording, stack, more, stdout=null, stderr=null, parts=parts)
    return run_started(recording, start, [null, null], name)
