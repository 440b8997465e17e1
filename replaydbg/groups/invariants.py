"""Invariants of a whole group: evaluated in consistent cuts, over values of all processes and messages in flight."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from replaydbg.bisect.search import Found, search
from replaydbg.debugger import Session
from replaydbg.debugger.values.values_at_moments import ModuleValue
from replaydbg.distributed.chains_of_cuts import chain_of_cuts
from replaydbg.errors import UsageError
from replaydbg.events.verdict import Verdict
from replaydbg.groups.cut_values import values_at_positions
from replaydbg.groups.group_cuts import GroupCut, GroupCuts, WholeMessage
from replaydbg.groups.message_contents import MOST_KEPT, MessageContents

MOST_POSITIONS = 1_000_000
"""Positions of which cuts are made: each takes some 20 microseconds."""

AT_ONCE = 4
"""Cuts that are evaluated at once: one run of each process passes all of them."""


class Invariant(NamedTuple):
    """A condition on a global state."""

    local: str
    """An expression, evaluated in each process."""
    holds: str
    """An expression over `total`, `locals` and `flight` that is true if it holds."""
    channel: str = ""
    """An expression over `m`, the bytes of a message, for each message in flight; empty: messages do not count."""
    module: str = "__main__"
    """The module in which `local` is evaluated."""
    settled: str = ""
    """An expression that is true in a process where cuts may be made, instead of at quiet positions; empty: none."""


class CutValue(NamedTuple):
    """An invariant in a cut."""

    cut: GroupCut
    verdict: Verdict
    locals: dict[int, Any]
    """For each process its value; those that have none are missing."""
    flight: tuple[Any, ...]
    """The values of the messages in flight."""
    total: Any
    """The sum of both; None: not all of them are numbers."""
    reason: str
    """Why it is undecided; empty: it is not."""


class _MessageValue(NamedTuple):
    """The value of `channel` for a message; where None is in its place, its bytes are not known."""

    value: Any


class ValuesElsewhere(Protocol):
    """Evaluates an expression at positions of processes on other machines."""

    def __call__(
        self, wanted: Mapping[int, Collection[int]], expression: str, *, module: str
    ) -> dict[int, dict[int, ModuleValue]]:
        """Return the values by process and position."""


class InvariantSearch:
    """Evaluates an invariant in the cuts of a chain, and finds the first one in which it does not hold."""

    def __init__(
        self,
        cuts: GroupCuts,
        session: Callable[[int], Session],
        invariant: Invariant,
        *,
        quiet: bool = True,
        values: ValuesElsewhere | None = None,
        width: int = AT_ONCE,
    ) -> None:
        """`session` returns the session of a process; with `values` they are evaluated elsewhere, without sessions.

        `width`: cuts that are evaluated at once. Raises UsageError if an expression cannot be read.
        """
        self._cuts, self._session, self._invariant = cuts, session, invariant
        self._elsewhere, self._width = values, width
        self._holds = _compiled(invariant.holds, "--holds")
        self._channel = _compiled(invariant.channel, "--channel") if invariant.channel else None
        self._contents = MessageContents(cuts.opened)
        self._values: dict[tuple[int, int], ModuleValue] = {}
        self._messages: dict[tuple[int, int], _MessageValue | None] = {}
        self.is_quiet = quiet and not invariant.settled
        option = "--settled" if invariant.settled else "" if quiet else "--every-event"
        if option and sum(cuts.finder.last.values()) > MOST_POSITIONS:
            raise UsageError(f"There are more than {MOST_POSITIONS:,} positions. Leave out {option}.")
        allowed: Mapping[int, Sequence[int]] = cuts.quiet if quiet else cuts.every
        if invariant.settled:
            _compiled(invariant.settled, "--settled")
            allowed = {process: self._settled(process, positions) for process, positions in cuts.every.items()}
        self.chain = chain_of_cuts(cuts.finder, cuts.opened.matching.members, allowed)
        """The positions of each cut, from before the first event to the end."""
        self.found: dict[int, CutValue] = {}
        """The cuts that were evaluated, by their place in the chain."""

    def _settled(self, process: int, positions: Sequence[int]) -> Sequence[int]:
        """Return the positions at which the process is settled: one run passes them all.

        All of them, if the expression has no value in it.
        """
        expression = f"bool({self._invariant.settled})"
        found = self._values_of({process: positions}, expression)[process]
        if all(each.reason for each in found.values()):
            return positions
        return [position for position in positions if found[position].text == "True"]

    def search(self, *, checks: int) -> Found:
        """Find the first cut in which it does not hold, and look at `checks` others. Raises UsageError, EngineLost."""
        if not self.participants:  # evaluated first: other cuts are undecided without them
            reasons = sorted(set(self.without_value().values()))
            raise UsageError(f"--local has no value in any process at the end: {reasons[0]}.")
        if checks >= len(self.chain):
            self.evaluate(range(len(self.chain)))  # one run of each process passes all, instead of one for every few
        return search(len(self.chain), self._look, width=self._width, checks=checks)

    def _values_of(self, wanted: Mapping[int, Collection[int]], expression: str) -> dict[int, dict[int, ModuleValue]]:
        if self._elsewhere is not None and wanted:
            return self._elsewhere(wanted, expression, module=self._invariant.module)
        return {
            process: values_at_positions(self._session(process), positions, expression, module=self._invariant.module)
            for process, positions in wanted.items()
        }

    @property
    def participants(self) -> set[int]:
        """The processes that have a value in the last cut: without one of these, a cut is undecided."""
        last = len(self.chain) - 1
        return set(self.evaluate([last])[0].locals)

    def without_value(self) -> dict[int, str]:
        """Return the processes that have no value in the last cut, with the reasons."""
        cut = self.chain[-1]
        values = {process: self._values[process, position] for process, position in cut.items()}
        return {process: value.reason for process, value in values.items() if value.reason}

    def _look(self, places: Sequence[int]) -> list[Verdict]:
        return [each.verdict for each in self.evaluate(places)]

    def evaluate(self, places: Sequence[int]) -> list[CutValue]:
        """Evaluate the invariant in some cuts of the chain."""
        new = [each for each in places if each not in self.found]
        positions: dict[int, set[int]] = {}
        for place in new:
            for process, position in self.chain[place].items():
                if (process, position) not in self._values:
                    positions.setdefault(process, set()).add(position)
        for process, found in self._values_of(positions, self._invariant.local).items():
            self._values |= {(process, position): value for position, value in found.items()}
        states = {place: self._state(place) for place in new}
        flying = {}
        if self._channel is not None:
            flying = {
                place: self._cuts.whole_in_flight(state.cut) for place, state in states.items() if not state.reason
            }
            self._read_messages([each for messages in flying.values() for each in messages])
        for place, state in states.items():
            self.found[place] = state if state.reason else self._decided(state, flying.get(place, []))
        return [self.found[each] for each in places]

    def _state(self, place: int) -> CutValue:
        """Return a cut with the values of its processes, and why it is undecided; the rest is still missing."""
        positions = self.chain[place]
        cut = self._cuts.at(positions, is_quiet=self.is_quiet)
        values = {process: self._values[process, position] for process, position in positions.items()}
        needed = self._needed(place)
        known = {
            process: _literal(value.text)
            for process, value in values.items()
            if not value.reason and (needed is None or process in needed)
        }
        missing = sorted(needed - set(known)) if needed is not None else []
        reason = cut.doubts[0] if cut.doubts else ""
        if missing:
            reason = f"process {missing[0]} has no value: {values[missing[0]].reason}"
        return CutValue(cut, Verdict.UNDECIDED, known, (), None, reason)

    def _needed(self, place: int) -> set[int] | None:
        """Return the processes that must have a value in a cut; None: any, since the last cut has not been evaluated.

        In the last cut itself those count that have one.
        """
        last = self.chain[-1]
        if place == len(self.chain) - 1 or not all(each in self._values for each in last.items()):
            return None
        return {process for process, position in last.items() if not self._values[process, position].reason}

    def _decided(self, state: CutValue, messages: Sequence[WholeMessage]) -> CutValue:
        found = [self._messages[each.channel, each.number] for each in messages]
        flight = tuple(each.value for each in found if each is not None)
        if len(flight) < len(found):
            return state._replace(reason="a message in flight was never received, so that its bytes are not recorded")
        total = _total([*state.locals.values(), *flight])
        holds = self._does_hold(state.locals, flight, total)
        return state._replace(verdict=Verdict.GOOD if holds else Verdict.BAD, flight=flight, total=total)

    def _read_messages(self, messages: Sequence[WholeMessage]) -> None:
        """Evaluate those that are new: one pass over the logs for each MOST_KEPT bytes of them."""
        new = {(each.channel, each.number): each for each in messages}
        batch: list[WholeMessage] = []
        size = 0
        for key, message in new.items():
            if key in self._messages:
                continue
            if batch and size + message.length > MOST_KEPT:
                self._evaluate_messages(batch)
                batch, size = [], 0
            batch.append(message)
            size += message.length
        self._evaluate_messages(batch)

    def _evaluate_messages(self, messages: Sequence[WholeMessage]) -> None:
        for message, content in zip(messages, self._contents.of(messages), strict=True):
            value = _MessageValue(self._of_message(message, content)) if content is not None else None
            self._messages[message.channel, message.number] = value

    def _of_message(self, message: WholeMessage, content: bytes) -> Any:
        names = {"m": content, "re": re, "channel": message.channel, "source": message.process}
        try:
            return eval(self._channel, names)  # type: ignore[arg-type]
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the user's expression
            raise UsageError(
                f"--channel raised {type(error).__name__} for the message {content[:60]!r} of "
                f"{message.process}@{message.event}: {error}"
            ) from None

    def _does_hold(self, known: dict[int, Any], flight: tuple[Any, ...], total: Any) -> bool:
        names = {"locals": known, "flight": list(flight), **({"total": total} if total is not None else {})}
        try:
            return bool(eval(self._holds, names))
        except NameError as error:
            if error.name == "total":
                raise UsageError("--holds uses total, but not all values are numbers.") from None
            raise UsageError(
                f"--holds raised NameError: {error}. Available names: locals, flight, and total "
                "if all values are numbers."
            ) from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the user's expression
            raise UsageError(f"--holds raised {type(error).__name__}: {error}") from None


def _compiled(source: str, option: str) -> Any:
    try:
        return compile(source, f"<{option}>", "eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise UsageError(f"{option} {source!r} is not an expression: {error}") from None


def _literal(text: str) -> Any:
    """Return a value from its repr(), or that text itself if it is no literal."""
    if text in ("inf", "-inf", "nan"):
        return float(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler, about a text that the program made
        try:
            return ast.literal_eval(text)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return text


def _total(values: Sequence[Any]) -> Any:
    if not all(isinstance(each, int | float | complex) for each in values):
        return None
    try:
        return sum(values)
    except OverflowError:
        return math.nan
