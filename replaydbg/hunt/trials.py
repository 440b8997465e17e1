"""Find the inputs that make the difference, by replaying one run with some of the answers of the other."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from replaydbg.bisect.ddmin import minimal, minimal_in_groups
from replaydbg.bisect.lane_turns import Preemption
from replaydbg.bisect.twins import Comparison, Input, InputKind, compare, elapsed
from replaydbg.events.verdict import Verdict
from replaydbg.hunt.bench import MOST, Bench, Count, How, Trial
from replaydbg.hunt.confirming import confirmed, confirmed_turns
from replaydbg.hunt.flip import Confirmation, Explained, Flip, OtherTurn
from replaydbg.hunt.mixture import mixture
from replaydbg.hunt.reading import Twins
from replaydbg.hunt.trial_end import TrialEnd, TrialOutcome
from replaydbg.log.edit.mix import Mixer
from replaydbg.log.edit.schedule import choices, possible_choices

__all__ = ["MOST", "How", "find_flip", "write_flipped"]

MOST_ALONE = 60
"""Maximum number of groups of inputs that are tried alone."""

_ARBITRARY = ("time.monotonic", "time.perf_counter", "time.process_time", "time.thread_time")

MOST_TURNS = 60
"""Maximum number of switches at which another thread is tried."""


def find_flip(twins: Twins, comparison: Comparison, how: How, others: Sequence[Twins] = ()) -> Flip:
    """Return the smallest set of inputs which, taken from the good run, makes the bad run pass.

    `others` pair the good run with other bad ones: a cause that explains these as well ranks before one that does not.
    """
    # On the same file system: the files that all trials share are linked, not copied.
    with tempfile.TemporaryDirectory(prefix="replaydbg-trials-") as place:
        return _CauseSearch(twins, comparison, others, Count(how, Path(place))).run()


def write_flipped(twins: Twins, flip: Flip, place: Path) -> Path:
    """Write the bad run with the deciding inputs of the good one as a recording into the empty directory `place`.

    Returns its path. A replay of it follows the bad run up to the point where that asks for, or writes, something else.
    """
    target = place / "flipped.rdbg-live"
    Mixer(twins.bad, twins.good, place).write(target, mixture(flip.inputs, is_bad_base=True))
    return target


@dataclass(slots=True)
class _CauseSearch:
    twins: Twins
    comparison: Comparison
    others: Sequence[Twins]
    count: Count
    liberties: dict[str, int] = field(default_factory=dict)
    """The deviations of the replay in which the smallest set made the bad run pass."""

    def run(self) -> Flip:
        bench = Bench(self.count, self.twins, is_bad_base=True)
        base = bench.ended([Trial(())])[0]
        self.count.like = base
        if base.outcome is not TrialOutcome.FAILS:
            return self._flip(reason=f"Replayed unchanged, the bad run {base}")
        # If it passes with no thread preempted and its own inputs, that is the cause, even if other inputs make it pass
        # indirectly, by shifting the threads against each other.
        schedule = [each for each in self.comparison.inputs if each.kind is InputKind.SCHEDULE]
        preempted = self._by_preemptions(bench, schedule) if schedule else None
        if preempted is not None:
            return preempted
        inputs = [each for each in self.comparison.inputs if self._can_be_exchanged(each)]
        groups = [group for group in map(_of_one_boot, _groups(inputs)) if group]
        inputs = [each for group in groups for each in group]
        alone = self._alone(bench, groups)
        best = self._best(bench, alone) if alone else None
        if best is not None and self._is_enough(best):
            return best
        turned = self._by_turns(bench, schedule) if schedule else None
        if turned is not None:
            return turned
        if best is not None:
            return replace(best, trials=self.count.trials, undecided=self.count.undecided, is_cut=self.count.is_over)
        everything = bench.ended([bench.with_inputs(inputs)])[0]
        if everything.outcome is TrialOutcome.PASSES:
            smallest = minimal_in_groups(groups, bench.makes_pass, at_once=self.count.how.jobs)
            return self._best(bench, [smallest])
        return self._other_way_round(groups, everything)

    def _is_enough(self, flip: Flip) -> bool:
        """Whether an input explains both runs, each in its own thread order; a clock only reflects that order."""
        return (
            flip.is_confirmed
            and "thread" not in dict(flip.liberties)
            and not any(each.gate.startswith("time.") for each in flip.inputs)
        )

    # ---- the order of threads ----

    def _by_preemptions(self, bench: Bench, schedule: Sequence[Input]) -> Flip | None:
        """Return the preemptions that make it fail; None: it does not pass without them."""
        preemptions = self.twins.bad_side.preemptions
        without = bench.with_inputs(schedule)
        if not preemptions or bench.ended([without])[0].outcome is not TrialOutcome.PASSES:
            return None
        self.liberties = bench.ended([without])[0].liberties
        kept = minimal(range(len(preemptions)), bench.fails_with_these_alone, at_once=self.count.how.jobs)
        only = Trial((), frozenset(bench.preemptions) - set(kept))
        replays = confirmed(
            bench,
            [
                ("the bad run as recorded", Trial(()), TrialOutcome.FAILS),
                ("with no thread preempted", without, TrialOutcome.PASSES),
                *([("with these preemptions and no others", only, TrialOutcome.FAILS)] if kept else []),
            ],
        )
        return self._flip(schedule, [preemptions[number] for number in kept], replays=replays, explained=self._races())

    def _by_turns(self, bench: Bench, schedule: Sequence[Input]) -> Flip | None:
        """Return the switches between waiting threads that make it fail; None: another order does not make it pass."""
        for left_out in dict.fromkeys([frozenset[int](), frozenset(bench.preemptions)]):
            possible = possible_choices(bench.mixer.records, left_out, bench.other_turns(frozenset()))
            numbers = tuple(each.switch for each in possible)
            found = self._first_turn(bench, numbers, left_out)
            if found is None and len(numbers) > 1:
                found = self._fewest_turns(bench, numbers, left_out)
            if found is not None:
                return self._of_turns(bench, schedule, found, left_out)
        return None

    def _first_turn(self, bench: Bench, numbers: tuple[int, ...], left_out: frozenset[int]) -> tuple[int, ...] | None:
        """Return a single deciding switch, the one that is nearest to the failure."""
        jobs = max(self.count.how.jobs, 1)
        near = numbers[::-1][:MOST_TURNS]
        for start in range(0, len(near), jobs):
            batch = near[start : start + jobs]
            trials = [Trial((), left_out, frozenset({each})) for each in batch]
            for number, verdict in zip(
                batch, bench.verdicts(trials, TrialOutcome.PASSES, TrialOutcome.FAILS), strict=True
            ):
                if verdict is Verdict.BAD:
                    return (number,)
        return None

    def _fewest_turns(self, bench: Bench, numbers: tuple[int, ...], left_out: frozenset[int]) -> tuple[int, ...] | None:
        def passes(sets: Sequence[tuple[int, ...]]) -> list[Verdict]:
            return bench.verdicts(
                [Trial((), left_out, frozenset(each)) for each in sets], TrialOutcome.PASSES, TrialOutcome.FAILS
            )

        if passes([numbers])[0] is not Verdict.BAD:
            return None
        return minimal(numbers, passes, at_once=self.count.how.jobs)

    def _of_turns(
        self, bench: Bench, schedule: Sequence[Input], found: tuple[int, ...], left_out: frozenset[int]
    ) -> Flip:
        side = self.twins.bad_side
        chosen = choices(bench.mixer.records, left_out, bench.other_turns(frozenset(found)))
        turns = tuple(
            OtherTurn(
                switch=each.switch,
                gave_way=side.turns[each.switch].lane if each.switch < len(side.turns) else (),
                recorded=each.recorded,
                recorded_key=side.lanes.get(each.recorded, ()),
                instead=each.chosen,
                instead_key=side.lanes.get(each.chosen, ()),
                after=side.afters[each.switch] if each.switch < len(side.afters) else 0,
            )
            for each in chosen
        )
        other = Trial((), left_out, frozenset(found))
        self.liberties = bench.ended([other])[0].liberties
        return self._flip(schedule, turns=turns, replays=confirmed_turns(bench, other), explained=self._races())

    def _races(self) -> Explained:
        """Return how many of the bad runs pass in another order of their threads."""
        explained = 0
        for each in self.others:
            bench = Bench(self.count, each, is_bad_base=True)
            if bench.ended([Trial(())])[0].outcome is TrialOutcome.PASSES:
                continue
            without = Trial((), frozenset(bench.preemptions))
            possible = possible_choices(bench.mixer.records, (), bench.other_turns(frozenset()))
            turned = Trial((), frozenset(), frozenset(choice.switch for choice in possible))
            explained += TrialOutcome.PASSES in [ended.outcome for ended in bench.ended([without, turned])]
        return Explained(explained + 1, len(self.others) + 1)

    # ---- inputs ----

    def _alone(self, bench: Bench, groups: list[list[Input]]) -> list[tuple[Input, ...]]:
        """Return the sets within one group that make the bad run pass alone, the smallest first.

        Delta debugging from everything on ends at any set of which nothing can be left out; a set of one kind is
        usually closer to the cause than one that leads to it indirectly.
        """
        # Of two sets of equal size the first is reported: the same clock, as if both runs had begun at once.
        kinds = [
            kind
            for group in groups[:MOST_ALONE]
            for kind in ([] if group[0].is_elapsed else _elapsed(group), group)
            if kind
        ]
        verdicts = bench.makes_pass([tuple(kind) for kind in kinds])
        good = [kind for kind, verdict in zip(kinds, verdicts, strict=True) if verdict is Verdict.BAD]
        sets = [minimal(kind, bench.makes_pass, at_once=self.count.how.jobs) for kind in good]
        return sorted(sets, key=lambda each: (self._is_roundabout(bench, each), len(each)))

    def _is_roundabout(self, bench: Bench, inputs: tuple[Input, ...]) -> bool:
        """Whether threads took turns in another order, too: then that may be what made the run pass."""
        liberties = bench.ended([bench.with_inputs(inputs)])[0].liberties
        return "thread" in liberties and all(each.kind is not InputKind.SCHEDULE for each in inputs)

    def _best(self, bench: Bench, sets: Sequence[tuple[Input, ...]]) -> Flip:
        """Return the set that explains most of the bad runs, and of these the first that makes the good run fail."""
        reverse = Bench(self.count, self.twins, is_bad_base=False)
        known = []
        for number, each in enumerate(sets):
            replays = self._confirmed(bench, reverse, each)
            explained = self._explained(each)
            is_confirmed = all(replay.is_confirmed for replay in replays)
            known.append(((-explained.runs, not is_confirmed, number), each, replays, explained))
        _, best, replays, explained = min(known, key=lambda each: each[0])
        self.liberties = bench.ended([bench.with_inputs(best)])[0].liberties
        others = [each for each in sets if each is not best]
        return self._flip(best, others=others, replays=replays, explained=explained)

    def _confirmed(self, bench: Bench, reverse: Bench, inputs: tuple[Input, ...]) -> tuple[Confirmation, ...]:
        """Replay both runs with and without these inputs."""
        what = "this input" if len(inputs) == 1 else "these inputs"
        found = confirmed(
            bench,
            [
                ("the bad run as recorded", Trial(()), TrialOutcome.FAILS),
                (f"the bad run with {what} from the good run", bench.with_inputs(inputs), TrialOutcome.PASSES),
            ],
        )
        back = confirmed(
            reverse,
            [
                ("the good run as recorded", Trial(()), TrialOutcome.PASSES),
                (f"the good run with {what} from the bad run", Trial(inputs), TrialOutcome.FAILS),
            ],
        )
        if not back[-1].is_confirmed:
            # Perhaps the moments of the two runs do not correspond one by one: then use all inputs of this group.
            kinds = {(each.kind, each.gate, each.name) for each in inputs}
            alike = [each for each in self.comparison.inputs if (each.kind, each.gate, each.name) in kinds]
            if any(each.is_elapsed for each in inputs):
                alike = elapsed(alike)
            gates = ", ".join(dict.fromkeys(each.gate or each.kind.value for each in inputs))
            if len(alike) > len(inputs):
                whole = (f"the good run with all results of {gates} from the bad run", Trial(alike), TrialOutcome.FAILS)
                again = confirmed(reverse, [whole])
                back = (back[0], again[0]) if again[0].is_confirmed else back
        return (*found, *back)

    def _explained(self, inputs: tuple[Input, ...]) -> Explained:
        """Return how many of the bad runs pass with the same kind of inputs, from the same places."""
        explained = 0
        wanted = {self._source_of(self.twins, each) for each in inputs}
        for other in self.others:
            bench = Bench(self.count, other, is_bad_base=True)
            found = [each for each in compare(other.good_side, other.bad_side).inputs if not each.is_handle]
            same = [each for each in found if self._source_of(other, each) in wanted]
            shifted = elapsed(same) if any(each.is_elapsed for each in inputs) else same
            explained += bool(same) and Verdict.BAD in bench.makes_pass([tuple(shifted), tuple(same)])
        return Explained(explained + 1, len(self.others) + 1)

    def _source_of(self, twins: Twins, each: Input) -> tuple[object, ...]:
        if each.kind is not InputKind.ANSWER:
            return each.kind, each.name
        site = twins.bad_side.events[each.bad_event - 1].site
        return each.kind, each.gate, site.file, site.line

    def _other_way_round(self, groups: list[list[Input]], everything: TrialEnd) -> Flip:
        """Search for inputs that make the good run fail: the bad run's answers may fit there where these did not."""
        groups = [group for group in groups if group and group[0].kind is not InputKind.SCHEDULE]
        bench = Bench(self.count, self.twins, is_bad_base=False)
        ended = bench.ended([Trial(()), Trial([each for group in groups for each in group])])
        if ended[0].outcome is TrialOutcome.PASSES and ended[1].outcome is TrialOutcome.FAILS:
            found = minimal_in_groups(groups, bench.makes_fail, at_once=self.count.how.jobs)
            replays = confirmed(
                bench,
                [
                    ("the good run as recorded", Trial(()), TrialOutcome.PASSES),
                    ("the good run with these inputs from the bad run", Trial(found), TrialOutcome.FAILS),
                ],
            )
            return self._flip(found, is_from_bad=True, replays=replays)
        schedule = [each for each in self.comparison.inputs if each.kind is InputKind.SCHEDULE]
        if schedule and ended[0].outcome is ended[1].outcome is TrialOutcome.PASSES:
            # If the good run passes with all inputs of the bad run, only the thread schedule is left.
            replays = confirmed(
                bench, [("the good run with all other inputs of the bad run", Trial(()), TrialOutcome.PASSES)]
            )
            why = "no other thread schedule that was tried made the bad run pass"
            return self._flip(
                schedule, replays=(*replays, Confirmation("the bad run in another order", None, why, False))
            )
        return self._flip(reason=f"With every differing input of the good run, the bad run {everything}")

    def _can_be_exchanged(self, each: Input) -> bool:
        return not each.is_handle and (each.kind is not InputKind.SCHEDULE or bool(self.twins.bad_side.preemptions))

    def _flip(
        self,
        inputs: Sequence[Input] = (),
        preemptions: Sequence[Preemption] = (),
        *,
        turns: tuple[OtherTurn, ...] = (),
        others: Sequence[tuple[Input, ...]] = (),
        reason: str = "",
        is_from_bad: bool = False,
        replays: tuple[Confirmation, ...] = (),
        explained: Explained | None = None,
    ) -> Flip:
        return Flip(
            inputs=tuple(sorted(inputs, key=lambda each: each.bad_event)),
            preemptions=tuple(preemptions),
            turns=turns,
            others=tuple(others),
            trials=self.count.trials,
            undecided=self.count.undecided,
            reason=reason,
            is_from_bad=is_from_bad,
            is_cut=self.count.is_over,
            liberties=tuple(self.liberties.items()),
            replays=replays,
            explained=explained or Explained(1, len(self.others) + 1),
        )


def _elapsed(group: list[Input]) -> list[Input]:
    return elapsed(group[::-1])[::-1]


def _of_one_boot(group: list[Input]) -> list[Input]:
    """Return answers of a clock that counts from an arbitrary moment as if both runs had begun at once.

    Unchanged, an answer of the other run would be a jump of that clock, which no run has ever seen.
    """
    if not group[0].gate.startswith(_ARBITRARY):
        return group
    return _elapsed(group)


def _groups(inputs: Sequence[Input]) -> list[list[Input]]:
    """Group similar inputs: answers of one gate often matter together. The last ones come first.

    Of two halves that both make the difference the first is followed, and inputs nearer to the failure explain more.
    """
    groups: dict[tuple[str, str], list[Input]] = defaultdict(list)
    for each in reversed(inputs):
        groups[each.kind.value, each.gate].append(each)
    return list(groups.values())
