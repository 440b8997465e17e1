"""A snapshot that goes on: wait for it, or look at what it has so far."""

from __future__ import annotations

from replaydbg.distributed.agents.snapshot_collector import NO_MARKER
from replaydbg.errors import SnapshotIncomplete

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.distributed.agents.global_state import GlobalState
    from replaydbg.distributed.agents.snapshot_collector import SnapshotCollector


class GlobalSnapshot:
    """A global snapshot of all agents, which `Agent.begin` returns at once."""

    def __init__(self, collector: SnapshotCollector) -> None:
        self.collector = collector

    def __repr__(self) -> str:
        return f"<GlobalSnapshot {self.name}{'' if self.is_complete else ', incomplete'}>"

    @property
    def name(self) -> str:
        """Its identity: `X#2` is the second snapshot that agent X began."""
        return self.collector.marker.snapshot

    @property
    def is_complete(self) -> bool:
        """Whether all states are recorded and all markers have arrived."""
        return self.collector.is_complete

    def state(self) -> GlobalState:
        """Return what is recorded so far, without waiting; it names the channels that still wait."""
        return self.collector.state()

    def wait(self, timeout: float | None = None) -> GlobalState:
        """Wait until the snapshot is complete; return its result.

        `timeout` is in seconds; None: no limit. Raises SnapshotIncomplete, which has what is recorded so far. Markers
        arrive only where agents receive: an agent that waits here has to receive in another thread, or to call
        `take_markers` first.
        """
        if not self.collector.wait(timeout):
            raise self._incomplete()
        return self.state()

    def _incomplete(self) -> SnapshotIncomplete:
        found = self.state()
        waiting = {each.channel: each.waits.removeprefix(NO_MARKER) for each in found.channels if each.waits}
        return SnapshotIncomplete(self.name, waiting, found.missing, found)

    async def wait_async(self) -> GlobalState:
        """Wait in an asyncio task until the snapshot is complete; return its result. Limit it by `asyncio.timeout`.

        Raises SnapshotIncomplete if a message that counted as sent was not sent.
        """
        # Not at the top: a program without asyncio would pay 40 ms for it.
        import asyncio

        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def wake() -> None:
            # It may be completed by another thread.
            loop.call_soon_threadsafe(done.set)

        self.collector.call_when_done(wake)
        try:
            await done.wait()
        finally:
            self.collector.call_no_more(wake)
        if not self.collector.is_complete:
            raise self._incomplete()
        return self.state()
