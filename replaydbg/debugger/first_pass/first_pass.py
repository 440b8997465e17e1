"""The first pass of a session: its run as a whole, repeated once, perhaps while the session is used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from replaydbg.debugger.first_pass.run_endings import ending_of, is_divergence
from replaydbg.debugger.first_pass.run_index import Index, RunEnding, read_index, save_index
from replaydbg.debugger.long_work import LongWork
from replaydbg.engine.reports import EndReport, Where
from replaydbg.engine.travel import Travel

LONG = 1_000_000
"""Lines of a run that takes so long to repeat that a session opens before that is done."""


class FirstPass:
    """Repeats the run once. Until that is done in a thread, the index of an earlier session answers."""

    def __init__(self, travel: Travel, work: LongWork, earlier: Index | None, *, is_script: bool) -> None:
        """`earlier` is the index of an earlier session, None if there is none."""
        self._travel, self._work = travel, work
        self._earlier, self._is_script = earlier, is_script
        self._is_running = False
        self._ending: RunEnding
        self._index: Index
        self.is_repeated = False
        """Whether the run took the path that it took in the earlier session. Set at the end of the pass."""
        self.has_diverged = False
        """Whether it ended because it differed from the recording. Set at the end of the pass."""
        self.doubt = ""
        """That a signal handler may have run elsewhere than in the recorded run; empty: there is no doubt."""

    @property
    def can_run_behind(self) -> bool:
        """Whether it takes long, and where it leads is known."""
        return self._earlier is not None and self._earlier.total >= LONG and self._earlier.knows_failure

    def run(self, ended: EndReport | None) -> None:
        """Repeat the run, unless it has `ended` already. Raises EngineLost and Cancelled."""
        self._work.begin("replaying", self._earlier.total if self._earlier is not None else 0)
        self._take(self._travel.first_pass() if ended is None else ended)

    def begin(self) -> Where:
        """Begin to repeat it in a thread; return the position where it leads. It must be able to run behind."""
        assert self._earlier is not None, "nothing is known of the run"
        assert self._earlier.standing is not None, "nothing is known of its end"
        self._index = self._earlier
        self._work.total_lines = self._earlier.total
        self.is_repeated, self._is_running = True, True
        self._work.begin("replaying", self._earlier.total)
        self._travel.begin_pass()
        return self._earlier.standing

    def settle(self) -> bool:
        """Take the results of a pass that has ended meanwhile: whether it showed another run than the earlier session.

        Raises EngineLost if it was lost.
        """
        if not self._is_running or not self._travel.is_passed:
            return False
        ended = self._travel.await_pass()
        self._is_running = False
        self._take(ended)
        return not self.is_repeated

    def wait(self) -> None:
        """Wait for the end of a pass that runs in a thread; `settle` then takes its results."""
        if self._is_running:
            self._work.begin("replaying", self._index.total)
            self._travel.await_pass()

    @property
    def index(self) -> Index:
        """The index of the run; the earlier one until the pass is over."""
        return self._index

    @property
    def standing(self) -> Where | None:
        """The position where an earlier session opened, while only that is known; None: the pass is over."""
        return self._index.standing if self._is_running else None

    def save(self, path: Path, standing: Callable[[], bytes]) -> None:
        """Write the index beside the recording at `path`; `standing` returns where the session opened."""
        is_exact = not self.has_diverged and not self.doubt
        save_index(path, self._travel.engine, self._ending, standing() if is_exact else b"")

    def _take(self, ended: EndReport) -> None:
        self.doubt = ended.doubt
        self._ending = ending_of(ended, self._travel.why_it_ends, is_script=self._is_script)
        self.has_diverged = is_divergence(ended)
        self._index = index = read_index(self._travel.engine, self._ending)
        self._work.total_lines = index.total
        if self._ending.is_bounded:
            self._travel.last_line = index.total
        earlier = self._earlier
        self.is_repeated = earlier is None or (earlier.total, earlier.digest) == (index.total, index.digest)
