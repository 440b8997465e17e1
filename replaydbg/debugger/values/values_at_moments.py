"""Values of an expression at many moments: one run of the program passes them all."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from replaydbg.debugger.bisection.predicates import check
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.values.values_in_process import ValuesInProcess
from replaydbg.engine.engine_process import EngineProcess, PendingAnswer
from replaydbg.engine.queries import GetModuleValue
from replaydbg.errors import AskFailed

AT_ONCE = 4
"""Copies of the program that evaluate while it runs on."""

LONGEST = 5.0
"""Seconds that one evaluation in a copy may take."""


class ModuleValue(NamedTuple):
    """The value of an expression, with the names of a module."""

    text: str
    """Its repr(); empty: there is none."""
    reason: str
    """Why there is none."""


def values_at(
    view: ReplayView, counts: Sequence[int], expression: str, *, module: str = "__main__"
) -> dict[int, ModuleValue]:
    """Return the value of an expression before each of these lines.

    In the process that passes them, where that changes nothing; otherwise each in a throw-away copy of it.

    Raises UsageError if the expression cannot be read, Cancelled and EngineLost.
    """
    query = check(expression, module=module).query(GetModuleValue)
    view.work.begin(f"evaluating {expression}")
    wanted = sorted(set(counts))
    found = {count: ModuleValue(*value) for count, value in ValuesInProcess(view, query).of(wanted).items()}
    return found | _by_copies(view, query, [each for each in wanted if each not in found])


def _by_copies(view: ReplayView, query: GetModuleValue, counts: Sequence[int]) -> dict[int, ModuleValue]:
    found: dict[int, ModuleValue] = {}
    pending: deque[tuple[int, PendingAnswer[tuple[str, str]]]] = deque()

    def take_first() -> None:
        count, first = pending.popleft()
        try:
            found[count] = ModuleValue(*first.value(LONGEST, view.work.idle))
        except AskFailed as error:
            found[count] = ModuleValue("", error.reason)
        finally:
            first.close()

    worker: EngineProcess | None = None
    try:
        for count in counts:
            worker = view.travel.at(count) if worker is None else view.travel.arrived(worker, count)
            pending.append((count, worker.begin_to_ask(query)))
            if len(pending) >= AT_ONCE:
                take_first()
        while pending:
            take_first()
    finally:
        for _, each in pending:
            each.close()
        if worker is not None:
            worker.kill()
    return found
