"""Stable properties of a group: once one holds, it holds until somebody outside acts. Deadlock and termination.

They are looked for in cuts just before the outside acted (a signal, the end of the recording), or before a process of
the group killed another one: what holds in an earlier cut holds there, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from replaydbg.distributed.chains_of_cuts import chain_of_cuts, clocks_of
from replaydbg.distributed.cuts import CutFinder
from replaydbg.events import linux
from replaydbg.groups.group_cuts import GroupCut, GroupCuts
from replaydbg.groups.group_waits import LOCK, Blocked, GroupWaits, Node, WaitingCut

MOST_SIGNALS = 1_000
"""Signals before which a cut is looked at."""

_FROM_INSIDE = {linux.SIGCHLD, linux.SIGALRM, linux.SIGVTALRM, linux.SIGPROF, linux.SIGPIPE}
"""Signals that a program causes itself."""


class Deadlock(NamedTuple):
    """Threads of which none can go on before another one does."""

    core: tuple[Blocked, ...]
    """Those that wait for each other."""
    others: tuple[Blocked, ...]
    """Those that wait for these."""
    cut: GroupCut
    """A cut in which they wait."""
    last: Blocked
    """The one that began to wait last, by the clock of the group: from then on it was a deadlock."""
    is_certain: bool = True
    """False: it is none if a thread waits for a lock of its process only for a time, which is not recorded."""


class Termination(NamedTuple):
    """All processes wait or have ended, and nothing is in flight: nothing can happen without the outside."""

    cut: GroupCut
    """The first cut of the chain in which that holds, and from which on it holds."""
    blocked: tuple[Blocked, ...]
    """The threads that wait."""


class StableProperties:
    """Finds when stable properties of a group became true."""

    def __init__(self, cuts: GroupCuts) -> None:
        """Take the cuts of a group: reads the log of each process. Raises a ReplaydbgError."""
        self.cuts = cuts
        self.waits = GroupWaits(cuts)
        self._finders: dict[bool, CutFinder] = {}

    def deadlock(self) -> Deadlock | None:
        """Return the first deadlock; None: there was none, as far as it is known.

        If there is no certain one, one that is none if a thread waits for a lock of its process only for a time.
        """
        return self._first_deadlock(is_certain=True) or self._first_deadlock(is_certain=False)

    def _first_deadlock(self, *, is_certain: bool) -> Deadlock | None:
        for before_deaths in (True, False):
            self._require(before_deaths=before_deaths)
            for wanted in self._candidates():
                cut = self.cuts.latest(wanted)
                found = self.waits.at(cut.positions, locks_wait=not is_certain)
                cores = found.cores()
                if cores:
                    return self._deadlock(cut, found, cores[0], is_certain=is_certain)
        return None

    def termination(self) -> Termination | None:
        """Return when the group had terminated; None: it had not."""
        self._require(before_deaths=False)
        allowed = self.cuts.quiet
        chain = chain_of_cuts(self.cuts.finder, self.cuts.opened.matching.members, allowed)
        first: WaitingCut | None = None
        for positions in reversed(chain):
            found = self.waits.at(positions)
            is_idle = not found.living or (found.is_terminated and not any(True for _ in self._under_way(positions)))
            if not is_idle or not any(positions.values()):
                break
            first = found
        if first is None:
            return None
        cut = self.cuts.at(first.cut, is_quiet=True)
        return Termination(cut, tuple(first.blocked[each] for each in sorted(first.blocked)))

    def _require(self, *, before_deaths: bool) -> None:
        """Let cuts meet what the ends of streams need, and `before_deaths` that nobody has been killed."""
        if before_deaths not in self._finders:
            self.cuts.require(self.waits.requirements(before_deaths=before_deaths))
            self._finders[before_deaths] = self.cuts.finder
        self.cuts.finder = self._finders[before_deaths]

    def _under_way(self, positions: dict[int, int]) -> Iterator[object]:
        for history in self.cuts.histories:
            if history.found.channel.receivers:
                yield from history.in_flight(positions)
                yield from history.unfinished(positions)

    def _candidates(self) -> Iterator[dict[int, int]]:
        """Yield positions of cuts in which a deadlock is looked for, earlier ones first."""
        signals = {process: self._signals(process) for process in self.waits.histories}
        last = dict(self.cuts.finder.last)
        yield last | {process: each[0] for process, each in signals.items() if each}
        for process, each in signals.items():
            for position in each[:MOST_SIGNALS]:
                yield last | {process: position}
        yield last | {process: each[-1] for process, each in signals.items() if each}
        for process, position in islice(self.waits.kills(), MOST_SIGNALS):  # of the group, too, may end a deadlock
            yield last | {process: position}
        yield last

    def _signals(self, process: int) -> list[int]:
        """Return the positions of a process at which a signal from outside was handled."""
        history = self.waits.histories[process]
        first = self.cuts.opened.member(process).branch
        return sorted({after for after, number in history.signals if number not in _FROM_INSIDE and after >= first})

    def _deadlock(self, cut: GroupCut, found: WaitingCut, core: set[Node], *, is_certain: bool) -> Deadlock:
        clocks = clocks_of(self.cuts.opened.matching.members)
        # Idle threads of a process that waits are not what its deadlock is about.
        calling = {process for process, lane in core if found.blocked[process, lane].kind != LOCK}
        core = {each for each in core if each[0] not in calling or found.blocked[each].kind != LOCK}
        waiting = [found.blocked[each] for each in sorted(core)]
        last = max(waiting, key=lambda each: (clocks[each.process].at(each.position), each.process))
        others = tuple(found.blocked[each] for each in sorted(found.stuck - core))
        return Deadlock(tuple(waiting), others, cut, last, is_certain)
