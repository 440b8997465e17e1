"""Which inputs make the difference: found by replaying one run with some of the answers of the other."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replaydbg.bisect.ddmin import minimal, minimal_in_groups
from replaydbg.bisect.twins import Comparison, Input, Preemption, Told, elapsed
from replaydbg.bisect.verdict import Verdict
from replaydbg.errors import ReplaydbgError
from replaydbg.hunt.capture import captured
from replaydbg.hunt.flip import Flip
from replaydbg.hunt.forked import in_processes
from replaydbg.hunt.mixing import Mixer
from replaydbg.hunt.reading import Twins
from replaydbg.replay import replay
from replaydbg.replay.lenient import Lenient

MOST = 400
"""Trials, after which what is known has to do. A search among 1,000 answers of which two matter takes some 60."""

PATIENCE = 8
"""So many times as long as the longer run, and one second, a trial may take. Clocks stand still where neither run has
an answer: a program that waits for the time would wait for ever."""

MOST_ALONE = 60
"""So many kinds of inputs are tried alone."""

PASSES, FAILS, OTHERWISE, UNTOLD = "passes", "fails", "fails otherwise", "cannot be told"
"""How a trial ends: as the good run; as the bad run; with another failure; nobody knows."""


@dataclass(frozen=True, slots=True)
class How:
    """How trials are made."""

    jobs: int = 1
    """So many at once."""
    pattern: re.Pattern[bytes] | None = None
    """What has this in its output has failed, too."""
    most: int = MOST
    """How many are made at most."""
    progress: Callable[[int], None] = lambda trials: None
    """Told now and then how many there were."""


def find_flip(twins: Twins, comparison: Comparison, how: How) -> Flip:
    """Return the smallest set of inputs which, taken from the good run, makes the bad run pass."""
    # Beside each other: the files that all trials share are linked, not copied.
    with tempfile.TemporaryDirectory(prefix="replaydbg-trials-") as place:
        return _Search(twins, comparison, how, Path(place)).run()


def write_flipped(twins: Twins, flip: Flip, place: Path) -> Path:
    """Write the bad run, told what makes the difference, as a recording into the empty directory `place`; return it.

    A replay of it goes the way of the bad run up to where that asks, or writes, something else.
    """
    target = place / "flipped.rdbg-live"
    Mixer(twins.bad, twins.good, place, is_bad_base=True).write(target, flip.inputs)
    return target


@dataclass(slots=True)
class _Search:
    twins: Twins
    comparison: Comparison
    how: How
    place: Path
    trials: int = 0
    undecided: int = 0
    like: dict[str, Any] = field(default_factory=dict)
    """How the bad run ended when it was replayed as it was."""
    liberties: dict[str, int] = field(default_factory=dict)
    """What the replay did otherwise than recorded in which the smallest set made the bad run pass."""

    def run(self) -> Flip:
        bench = self._bench(is_bad_base=True)
        base = bench.ended([bench.with_inputs(())])[0]
        self.like = base
        if base["how"] != FAILS:
            return self._flip(reason=f"Replayed with nothing exchanged, the bad run {_told(base)}")
        inputs = [each for each in self.comparison.inputs if self._can_be_exchanged(each)]
        groups = _groups(inputs)
        found = self._alone(bench, groups)
        if found:
            return self._found(bench, found[0], found[1:])
        everything = bench.ended([bench.with_inputs(inputs)])[0]
        if everything["how"] == PASSES:
            return self._found(bench, minimal_in_groups(groups, bench.makes_pass, at_once=self.how.jobs))
        return self._other_way_round(groups, everything)

    def _alone(self, bench: _Bench, groups: list[list[Input]]) -> list[tuple[Input, ...]]:
        """Return the sets within one group that make the bad run pass alone, the smallest first.

        Delta debugging from everything on ends at any set of which nothing can be left out; one of a single kind says
        more as a rule than what led to it in a roundabout way.
        """
        # Of two sets of one size the first is told: the same clock, as if both runs had begun at once.
        kinds = [kind for group in groups[:MOST_ALONE] for kind in (_elapsed(group), group) if kind]
        verdicts = bench.makes_pass([tuple(kind) for kind in kinds])
        good = [kind for kind, verdict in zip(kinds, verdicts, strict=True) if verdict is Verdict.BAD]
        sets = [minimal(kind, bench.makes_pass, at_once=self.how.jobs) for kind in good]
        return sorted(sets, key=lambda each: (self._is_roundabout(bench, each), len(each)))

    def _is_roundabout(self, bench: _Bench, inputs: tuple[Input, ...]) -> bool:
        """Whether threads took turns in another order, too: then it may be that which made the run pass."""
        liberties = bench.ended([bench.with_inputs(inputs)])[0].get("liberties", {})
        return "lane" in liberties and all(each.told is not Told.SCHEDULE for each in inputs)

    def _other_way_round(self, groups: list[list[Input]], everything: dict[str, Any]) -> Flip:
        """Look for what makes the good run fail: there the answers of the bad run may fit where these did not."""
        groups = [group for group in groups if group and group[0].told is not Told.SCHEDULE]
        bench = self._bench(is_bad_base=False)
        ended = bench.ended([bench.with_inputs(()), bench.with_inputs([each for group in groups for each in group])])
        if ended[0]["how"] == PASSES and ended[1]["how"] == FAILS:
            found = minimal_in_groups(groups, bench.makes_fail, at_once=self.how.jobs)
            return self._flip(found, is_from_bad=True)
        schedule = [each for each in self.comparison.inputs if each.told is Told.SCHEDULE]
        if schedule and ended[0]["how"] == ended[1]["how"] == PASSES:
            # Told all that the bad run was told, the good run passes: only the order of the threads is left.
            return self._flip(schedule)
        return self._flip(reason=f"With all that differs from the good run, the bad run {_told(everything)}")

    def _bench(self, *, is_bad_base: bool) -> _Bench:
        shared = self.place / ("bad" if is_bad_base else "good")
        shared.mkdir()
        base, other = (self.twins.bad, self.twins.good) if is_bad_base else (self.twins.good, self.twins.bad)
        return _Bench(self, Mixer(base, other, shared, is_bad_base=is_bad_base))

    def _can_be_exchanged(self, each: Input) -> bool:
        return not each.is_handle and (each.told is not Told.SCHEDULE or bool(self.twins.bad_side.preemptions))

    def _found(self, bench: _Bench, inputs: Sequence[Input], others: Sequence[tuple[Input, ...]] = ()) -> Flip:
        """Say which preemptions it was, if it was those: a few of many are enough as a rule."""
        preemptions = self.twins.bad_side.preemptions
        self.liberties = bench.ended([bench.with_inputs(inputs)])[0].get("liberties", {})
        if not any(each.told is Told.SCHEDULE for each in inputs):
            return self._flip(inputs, others=others)
        kept = minimal(range(len(preemptions)), bench.fails_with_these_alone, at_once=self.how.jobs)
        return self._flip(inputs, [preemptions[number] for number in kept], others=others)

    def _flip(
        self,
        inputs: Sequence[Input] = (),
        preemptions: Sequence[Preemption] = (),
        *,
        others: Sequence[tuple[Input, ...]] = (),
        reason: str = "",
        is_from_bad: bool = False,
    ) -> Flip:
        return Flip(
            inputs=tuple(sorted(inputs, key=lambda each: each.bad_event)),
            preemptions=tuple(preemptions),
            others=tuple(others),
            trials=self.trials,
            undecided=self.undecided,
            reason=reason,
            is_from_bad=is_from_bad,
            is_cut=self.trials >= self.how.most,
            liberties=tuple(self.liberties.items()),
        )


_Trial = tuple[Sequence[Input], frozenset[int]]
"""What is exchanged, and which preemptions are left out."""


class _Bench:
    """Trials on the log of one of the two recordings."""

    def __init__(self, search: _Search, mixer: Mixer) -> None:
        self.search, self.mixer = search, mixer
        self.known: dict[tuple[frozenset[int], frozenset[int]], dict[str, Any]] = {}
        self.preemptions = range(len(search.twins.bad_side.preemptions)) if mixer.is_bad_base else range(0)

    def with_inputs(self, inputs: Sequence[Input]) -> _Trial:
        """Return a trial: what is exchanged, and which preemptions are left out."""
        is_rescheduled = any(each.told is Told.SCHEDULE for each in inputs)
        return inputs, frozenset(self.preemptions) if is_rescheduled else frozenset()

    def makes_pass(self, sets: Sequence[tuple[Input, ...]]) -> list[Verdict]:
        """Say of each set whether the run passes with it."""
        return [self._verdict(each, PASSES, FAILS) for each in self.ended([self.with_inputs(each) for each in sets])]

    def makes_fail(self, sets: Sequence[tuple[Input, ...]]) -> list[Verdict]:
        """Say of each set whether the run fails with it."""
        return [self._verdict(each, FAILS, PASSES) for each in self.ended([self.with_inputs(each) for each in sets])]

    def fails_with_these_alone(self, sets: Sequence[tuple[int, ...]]) -> list[Verdict]:
        """Say of each set of preemptions whether the run fails with no others."""
        trials: list[_Trial] = [((), frozenset(self.preemptions) - set(each)) for each in sets]
        return [self._verdict(each, FAILS, PASSES) for each in self.ended(trials)]

    def _verdict(self, ended: dict[str, Any], bad: str, good: str) -> Verdict:
        return {bad: Verdict.BAD, good: Verdict.GOOD}.get(ended["how"], Verdict.UNDECIDED)

    def ended(self, trials: Sequence[_Trial]) -> list[dict[str, Any]]:
        """Make trials, as many at once as may be, and say how each ended; none is made twice."""
        keys = [(frozenset(map(id, inputs)), left_out) for inputs, left_out in trials]
        new = [(key, trial) for key, trial in dict(zip(keys, trials, strict=True)).items() if key not in self.known]
        jobs = self.search.how.jobs
        for start in range(0, len(new), jobs):
            batch = new[start : start + jobs]
            ended = self._at_once([trial for _, trial in batch])
            self.known.update(zip([key for key, _ in batch], ended, strict=True))
        return [self.known[key] for key in keys]

    def _at_once(self, trials: Sequence[_Trial]) -> list[dict[str, Any]]:
        search = self.search
        if search.trials + len(trials) > search.how.most:
            search.trials = search.how.most
            return [{"how": UNTOLD, "why": "there were too many trials"}] * len(trials)
        places = []
        for changes, left_out in trials:
            search.trials += 1
            places.append(search.place / f"trial-{search.trials}.rdbg-live")
            self.mixer.write(places[-1], changes, left_out)
        search.how.progress(search.trials)
        seconds = max(each.end.seconds for each in (search.twins.good, search.twins.bad) if each.end is not None)
        tasks = [_Task(place, search.how.pattern) for place in places]
        ended = [self._judged(each) for each in in_processes(tasks, timeout=PATIENCE * (1 + seconds))]
        for place in places:
            shutil.rmtree(place)
        search.undecided += sum(each["how"] in (UNTOLD, OTHERWISE) for each in ended)
        return ended

    def _judged(self, ended: dict[str, Any] | None) -> dict[str, Any]:
        if ended is None:
            return {"how": UNTOLD, "why": "it took too long"}
        like = self.search.like
        is_other = like and (ended.get("status"), ended.get("exception")) != (like.get("status"), like.get("exception"))
        return {**ended, "how": OTHERWISE} if ended["how"] == FAILS and is_other else ended


@dataclass(frozen=True, slots=True)
class _Task:
    """Replays one log; runs in a process of its own."""

    place: Path
    pattern: re.Pattern[bytes] | None

    def __call__(self) -> dict[str, Any]:
        with captured() as capture:
            try:
                result = replay(
                    self.place, lenient=Lenient(), stdout=capture.stdout.fileno(), stderr=capture.stderr.fileno()
                )
            except (ReplaydbgError, OSError) as error:
                return {"how": UNTOLD, "why": str(error)}
            outside = capture.run(result.status)
        if result.outcome is None:
            return {"how": UNTOLD, "why": result.cannot_test}
        is_found = self.pattern is not None and self.pattern.search(outside.output + outside.errors) is not None
        exception = result.outcome.exception.type if result.outcome.exception is not None else None
        how = FAILS if result.outcome.is_failure or is_found else PASSES
        told = {"how": how, "status": result.outcome.status, "exception": exception, "why": str(result.outcome)}
        return told | {"liberties": result.liberty_counts}


def _elapsed(group: list[Input]) -> list[Input]:
    return elapsed(group[::-1])[::-1]


def _groups(inputs: Sequence[Input]) -> list[list[Input]]:
    """Put together what is alike: answers of one gate often matter together. The last ones come first.

    Of two halves that both make the difference the first is followed, and what is nearer to the failure says more.
    """
    groups: dict[tuple[str, str], list[Input]] = defaultdict(list)
    for each in reversed(inputs):
        groups[each.told.value, each.gate].append(each)
    return list(groups.values())


def _told(ended: dict[str, Any]) -> str:
    words = {PASSES: "passes", FAILS: "fails", OTHERWISE: "fails in another way", UNTOLD: "cannot be replayed"}
    return f"{words[ended['how']]}: {ended.get('why', '')}".rstrip(": ")
