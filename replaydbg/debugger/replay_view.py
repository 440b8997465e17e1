"""The interface between a session and its queries."""

from __future__ import annotations

from typing import Protocol

from replaydbg.debugger.breakpoints import Breakpoints
from replaydbg.debugger.first_pass.run_index import Index
from replaydbg.debugger.frame_queries import FrameQueries
from replaydbg.debugger.long_work import LongWork
from replaydbg.debugger.session_results import Here, Moment, Raised
from replaydbg.debugger.source.source_files import SourceFiles
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.reports import Where
from replaydbg.engine.travel import Travel
from replaydbg.events.run_facts import Header


class ReplayView(Protocol):
    """The part of a session that queries need. They depend on this and not on Session, which depends on them."""

    @property
    def header(self) -> Header:
        """The header of the recording."""

    @property
    def travel(self) -> Travel:
        """The processes along the run."""

    @property
    def index(self) -> Index:
        """Steps for each event, exceptions, output and hits of the whole run."""

    @property
    def sources(self) -> SourceFiles:
        """The text of the program's source files."""

    @property
    def ask(self) -> FrameQueries:
        """Questions about the frames here."""

    @property
    def work(self) -> LongWork:
        """Progress and cancellation."""

    @property
    def breakpoints(self) -> Breakpoints:
        """The breakpoints."""

    @property
    def failure(self) -> Raised | None:
        """The exception that ended the program, or made its test fail; None: there is none."""

    @property
    def here(self) -> Here:
        """The current position."""

    @property
    def cursor(self) -> EngineProcess:
        """The process at the current position. Raises EngineLost."""

    @property
    def first_own(self) -> int:
        """The count of the program's own first line."""

    def count_of(self, moment: str | int | Moment) -> int:
        """Return the count of lines at `moment`. Raises NoSuchMoment."""

    def types_named(self, name: str) -> frozenset[str]:
        """Return the full names of the exception types that `name` means; none: there is none. Raises AskFailed."""

    def look_at(self, count: int) -> Where:
        """Return the state at another line."""

    def source_line(self, file: str, line: int) -> str:
        """Return a line of source without its indentation; empty if it is not available."""
