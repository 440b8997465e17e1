"""Failed assertions of tests: the expression that was asserted, and the line after which it became false."""

from __future__ import annotations

import ast

from replaydbg.classes import dataclass
from replaydbg.debugger.bisection import predicates
from replaydbg.debugger.bisection.bisect_results import Bisected
from replaydbg.debugger.bisection.predicates import Predicate
from replaydbg.debugger.bisection.run_bisection import begin_bisection
from replaydbg.debugger.session import Session
from replaydbg.debugger.source.statements import assertion_in_line
from replaydbg.errors import UsageError
from replaydbg.events.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Assertion:
    """An assertion."""

    source: str
    """The expression that was to be true."""
    function: str
    """The function that claims it."""
    started: int
    """The count of the first line of its call."""
    failed: int
    """The count of the line that claims it."""
    module: str
    """The name of its module; empty if unknown."""

    @property
    def in_its_call(self) -> Predicate:
        """The predicate that is bad where the assertion is false in the call that makes it."""
        return predicates.check(self.source, frame=self.function, started=self.started)


def frame_of_test(session: Session) -> int | None:
    """Return the number of the frame whose line failed; None if the session is not at a test's failure."""
    place = session.test.failure if session.test is not None else None
    frames = session.ask.stack()
    if place is None or not frames or session.failure is None or session.here.count != session.failure.count:
        return None
    # A helper such as assertEqual raises in a library: the test's own line is the interesting one.
    own = (place.own_file, place.own_line)
    return next((at for at, each in enumerate(frames) if (each.file, each.line) == own), 0)


def frame_to_show(session: Session) -> int:
    """Return the number of the frame to show first: not the helper in which a test's failure was raised.

    Helpers mark themselves: those of pytest and the like have `__tracebackhide__` in the frame, those of unittest
    `__unittest` in the module. 0 anywhere except at the failure of a test, and after a step.
    """
    own = (frame_of_test(session) or 0) if session.here.why != "step" else 0
    return next((number for number in range(own) if not _is_helper(session, number)), own)


def _is_helper(session: Session, number: int) -> bool:
    result = session.ask.evaluate('bool(locals().get("__tracebackhide__") or "__unittest" in globals())', number).value
    return result is not None and result.text == "True"


def assertion_of_test(session: Session) -> Assertion:
    """Return what the line claims that the test failed in; the session has just been opened.

    Raises UsageError if the recording is of no failing test, or its line claims nothing.
    """
    number = frame_of_test(session)
    if number is None:
        raise UsageError("Give an expression: this is not the recording of a failed test.")
    frame = session.ask.stack()[number]
    source = assertion_in_line("\n".join(session.sources.lines(frame.file)), frame.line)
    if not source:
        raise UsageError(
            f"Give an expression: the test failed in a line without an assertion ({frame.file}:{frame.line})."
        )
    module = session.ask.evaluate("__name__", number).value
    name = str(ast.literal_eval(module.text)) if module is not None else ""
    return Assertion(source, frame.name, frame.started, session.here.count, name)


def bisect_assertion(session: Session, claim: Assertion) -> Bisected | None:
    """Return the line after which an assertion became false, up to the failure; None: there is nothing to search.

    The search covers the call that makes the assertion. If it was never true there, the variables of the module may
    have had the wrong value before: then the search covers these.
    """
    found = None
    if claim.started < claim.failed:
        found = begin_bisection(session, claim.in_its_call, claim.started, claim.failed).permanent()
    if not was_true(found) and claim.module:
        before = begin_bisection(session, predicates.check(claim.source, module=claim.module), None, claim.failed).run()
        found = before if found is None or was_true(before) else found
    return found


def was_true(found: Bisected | None) -> bool:
    """Whether there is a line before which what is asked for was known to be good."""
    return found is not None and found.culprit is not None and found.culprit.before is Verdict.GOOD
