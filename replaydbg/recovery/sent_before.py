"""Replay a process that has ended for the bytes that it sent; it never goes live."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from replaydbg.config import load_settings
from replaydbg.errors import CannotResume
from replaydbg.log.reader import open_recording
from replaydbg.record.place import write_start
from replaydbg.replay.launcher import ReplayStart
from replaydbg.resume.conversation import CoreAnswer, Due
from replaydbg.resume.going_live import GoingLive, Listener, ResumeChoices
from replaydbg.resume.hooks import Hooks
from replaydbg.resume.preparation import continued_header, first_orders, first_plan, written_to
from replaydbg.resume.replaying import core_orders, perform, prepare_live


class _Reading(GoingLive):
    """A resumption that ends when the core has reported what was sent."""

    sent: dict[int, bytes]

    def answer(self, due: Due, answer: CoreAnswer, pid: int) -> None:
        """Keep it."""
        self.sent = dict(due.sent)
        self.is_planned = True


def sent_before(path: Path, name: str, events: Sequence[int]) -> dict[int, bytes]:
    """Return the bytes that the recorded process sent by each of these events, from a replay up to the last of them.

    Nothing goes live, and the fence is up. Raises CannotResume, or Divergence.
    """
    at = max(events) + 1
    with open_recording(path) as recording, ExitStack() as stack:
        plan = first_plan(recording, name, at, is_member=True)
        run = _Reading(plan, ResumeChoices(at=at), Listener(), Hooks(name), stack, is_dry=True)
        run.sent = {}
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="replaydbg-sent-")))
        live = directory / "sent.rdbg-live"
        live.mkdir(mode=0o700)
        with written_to(live):
            recording.unpack(live)
            write_start(live, continued_header(recording, live, run.plan), first_orders(recording.header))

        def prepared(core_fd: int, started: ExitStack) -> ReplayStart:
            orders = core_orders(recording, live, run, load_settings(), core_fd) | {"resume_sent": list(events)}
            return prepare_live(recording, live, run, orders, stack)

        perform(recording, live, run, prepared, stack, idle=0)
        missing = [event for event in events if event not in run.sent]
        if missing:
            raise CannotResume(
                name, f"the replay of process {recording.header.process} did not report event {missing[0]}"
            )
        return run.sent
