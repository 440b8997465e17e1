"""Another position of a session, for queries that do not move the session."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.debugger.breakpoints import Breakpoints
from replaydbg.debugger.first_pass.run_index import Index
from replaydbg.debugger.frame_queries import FrameQueries
from replaydbg.debugger.long_work import LongWork
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Here, Moment, Raised
from replaydbg.debugger.source.source_files import SourceFiles
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.reports import Frame, Where
from replaydbg.engine.travel import Travel
from replaydbg.events.run_facts import Header


class OtherPosition:
    """A line of the recorded run, as queries see it. Close it."""

    def __init__(self, view: ReplayView, count: int) -> None:
        """`count`: number of lines up to there. Raises EngineLost, and whatever cancels the work."""
        self._view = view
        self._cursor = view.travel.at(count)
        where = self._cursor.look()
        self.ask = FrameQueries(self)
        """Queries about the frames there."""
        self.here = Here(
            moment=view.index.moment(count),
            count=count,
            total=view.index.total,
            why="seek",
            lane=where.lane,
            stack=where.stack,
            lanes=where.lanes,
        )
        """The position."""

    def close(self) -> None:
        """End its process."""
        self._cursor.kill()

    @property
    def cursor(self) -> EngineProcess:
        """The process there; a new one if it was killed. Raises EngineLost."""
        if not self._cursor.is_alive:
            self._cursor.close()
            self._cursor = self.travel.instead_of_lost(self.here.count)
        return self._cursor

    def frames(self, lane: int | None) -> Sequence[Frame]:
        """See Standing."""
        return self.cursor.stack(lane)

    @property
    def header(self) -> Header:
        """See ReplayView."""
        return self._view.header

    @property
    def travel(self) -> Travel:
        """See ReplayView."""
        return self._view.travel

    @property
    def index(self) -> Index:
        """See ReplayView."""
        return self._view.index

    @property
    def sources(self) -> SourceFiles:
        """See ReplayView."""
        return self._view.sources

    @property
    def work(self) -> LongWork:
        """See ReplayView."""
        return self._view.work

    @property
    def breakpoints(self) -> Breakpoints:
        """See ReplayView."""
        return self._view.breakpoints

    @property
    def failure(self) -> Raised | None:
        """See ReplayView."""
        return self._view.failure

    @property
    def first_own(self) -> int:
        """See ReplayView."""
        return self._view.first_own

    def count_of(self, moment: str | int | Moment) -> int:
        """See ReplayView."""
        return self._view.count_of(moment)

    def types_named(self, name: str) -> frozenset[str]:
        """See ReplayView."""
        return self._view.types_named(name)

    def look_at(self, count: int) -> Where:
        """See ReplayView."""
        return self._view.look_at(count)

    def source_line(self, file: str, line: int) -> str:
        """See ReplayView."""
        return self._view.source_line(file, line)
