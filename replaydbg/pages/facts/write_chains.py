"""Who wrote the values of the failing line: each last write, and the writes that its value came from."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

from replaydbg.debugger import Session
from replaydbg.debugger.other_position import OtherPosition
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.run_queries import RunQueries
from replaydbg.debugger.session_results import LastWrite, Moment
from replaydbg.debugger.source.statements import names_in_line, what_has
from replaydbg.errors import Cancelled, ReplaydbgError
from replaydbg.groups.group_session import GroupSession
from replaydbg.pages.facts.page_facts import Instant, WriteStep
from replaydbg.pages.facts.work_budget import WorkBudget
from replaydbg.render import texts

MOST_STEPS = 4
"""Number of writes that lead back from one name, itself included."""
MOST_WRITES = 8
SECONDS = 1.5
"""Time after which no further writes are searched that lead to others: one takes some 0.1 s, of a test 0.3 s."""
_NO_DATA = ("module", "type", "function", "method", "builtin_function_or_method")


class WriteFinder:
    """Finds the last writes of what a line reads."""

    def __init__(self, session: Session, budget: WorkBudget, group: GroupSession | None) -> None:
        self._session, self._budget, self._group = session, budget, group
        self._seen: set[tuple[str, int]] = set()
        """What was reported already: a name, and the count of the write."""
        self.is_cut = False
        """Whether there was no time for all."""
        self._until = 0.0

    def steps(self, frame: int) -> Iterator[WriteStep]:
        """Yield the writes of each name in the line of a frame, each followed by those that led to it."""
        at = self._session.ask.stack()[frame]
        names = names_in_line(self._session.sources.text(at.file), at.line)
        self._until = time.monotonic() + SECONDS
        direct = [found for name in names if (found := self._direct(name, frame)) is not None]
        left = MOST_WRITES - len(direct)
        for number, each in enumerate(direct):
            # What one name does not need is for those behind it.
            share = left // (len(direct) - number)
            chain = list(islice(self._chain(each, 0), share + 1))
            left -= max(len(chain) - 1, 0)
            yield from chain

    def _direct(self, name: str, frame: int) -> LastWrite | None:
        if self._budget.is_spent:
            self.is_cut = True
            return None
        found = self._followed(self._session, name, frame)
        return found if found is not None and not self._is_no_data(name, frame) else None

    def _is_no_data(self, name: str, frame: int) -> bool:
        """Whether a name has a value that an import or a definition wrote: of no interest."""
        try:
            value = self._session.ask.evaluate(name, frame).value
        except Cancelled:
            raise
        except ReplaydbgError:
            return False
        return value is not None and value.type in _NO_DATA

    def _followed(self, view: ReplayView, name: str, frame: int) -> LastWrite | None:
        """Return the last write of a name, or of what has it if it cannot be followed itself."""
        while name:
            try:
                return RunQueries(view).why(name, frame)
            except Cancelled:
                raise
            except ReplaydbgError:
                name = what_has(name)
        return None

    def _chain(self, write: LastWrite, depth: int) -> Iterator[WriteStep]:
        last = write.content if write.content is not None else write
        if (write.expression, last.count) in self._seen:
            return
        self._seen.add((write.expression, last.count))
        yield self._step(write, depth)
        if last.moment is None or depth + 1 >= MOST_STEPS:
            return
        for name, moment in texts.to_follow(last)[:2]:
            if self._budget.is_spent or time.monotonic() > self._until:
                self.is_cut = True
                return
            further = self._at(name, moment)
            if further is not None and further.moment is not None:
                yield from self._chain(further, depth + 1)

    def _at(self, name: str, moment: Moment) -> LastWrite | None:
        with closing(OtherPosition(self._session, self._session.index.count(moment))) as position:
            return self._followed(position, name, 0)

    def _step(self, write: LastWrite, depth: int) -> WriteStep:
        lines = [each.text for each in texts.why_report(self._session, write, self._group)]
        instant = None
        if write.moment is not None:
            instant = Instant(texts.moment_text(write.moment), max(write.count, 1))
        mark = f"  -> {write.line}  "
        return WriteStep(
            expression=write.expression,
            headline=lines[0] if lines else "",
            instant=instant,
            source=write.source,
            details=tuple(each for each in lines[1:] if not each.startswith(mark)),
            depth=depth,
        )
