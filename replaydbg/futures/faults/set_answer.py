"""One answer changed: `--set 'event 812 = TimeoutError()'`; or a value: `--set 'limit = 3'`."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

from replaydbg.classes import dataclass
from replaydbg.errors import NoSuchMoment, UsageError
from replaydbg.events.records import Event
from replaydbg.futures.faults.fault_orders import encoded_outcome, encoded_statement
from replaydbg.gates.row import FILLS, OPENS
from replaydbg.gates.table import OWN
from replaydbg.log.coding.codec import encode_value
from replaydbg.log.reader import Recording, open_recording

_TEXT = re.compile(r"\s*event\s+(\d[\d,_]{0,30})\s*=\s*(.*)", re.DOTALL)
_MAKES_OBJECTS = frozenset(row.full_name for row in OWN if row.flags & (OPENS | FILLS) or row.handler == "slot")
"""Gates whose results are more than a value: a descriptor, or bytes in a buffer of the caller."""


@dataclass(frozen=True, slots=True)
class SetAnswer:
    """A call of the recorded run that gets another answer."""

    event: int
    """Its event, from 1. Futures begin before it."""
    is_raised: bool
    value: object
    """The result; or the name of an exception of `builtins`, and its arguments."""


def parsed_answer(text: str, *, only_values: bool = False) -> SetAnswer:
    """Return what a user wrote; `only_values`: where it can be nothing but a result. Raises UsageError."""
    match = _TEXT.fullmatch(text)
    if match is None:
        other = "" if only_values else " or an assignment such as 'limit = 3'"
        raise UsageError(f"--set must be 'event N = VALUE'{other} (got {text!r})")
    number, source = int(match[1].replace(",", "").replace("_", "")), match[2].strip()
    try:
        tree = ast.parse(source, mode="eval").body
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and not tree.keywords:
            name, arguments = tree.func.id, tuple(ast.literal_eval(each) for each in tree.args)
            if _is_exception(name):
                return SetAnswer(number, True, (name, arguments))
        return SetAnswer(number, False, ast.literal_eval(tree))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        other = "" if only_values else ", or a built-in exception such as TimeoutError()"
        raise UsageError(f"--set takes a literal such as b'abc' or 12.5{other} (got {source!r})") from None


def _is_exception(name: str) -> bool:
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def statement_order(text: str) -> bytes | None:
    """Return a change of a value as the core takes it; None: `text` is about an event. Raises UsageError."""
    if _TEXT.fullmatch(text) or re.match(r"\s*event\b", text):
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise UsageError(
            f"--set must be 'event N = VALUE' or an assignment such as 'limit = 3' (got {text!r})"
        ) from error
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Assign | ast.AugAssign):
        raise UsageError(f"--set must be 'event N = VALUE' or an assignment such as 'limit = 3' (got {text!r})")
    return encoded_statement(text.strip())


def answer_order(path: Path, answer: SetAnswer) -> bytes:
    """Return the answer as the core takes it. Raises UsageError, NoSuchMoment."""
    with open_recording(path) as recording:
        gate = _gate_of(recording, answer.event)
        if not answer.is_raised and gate in _MAKES_OBJECTS:
            raise UsageError(
                f"event {answer.event:,} is {gate}, whose result is no value: it can only raise an exception."
            )
        return encoded_outcome(gate, answer.is_raised, encode_value(answer.value), recording.header.gates)


def _gate_of(recording: Recording, number: int) -> str:
    for event in recording.events(controls=False):
        if isinstance(event, Event) and event.number == number:
            return event.gate
    raise NoSuchMoment(str(number), "the recording has no such event")
