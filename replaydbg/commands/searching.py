"""Arguments of `bisect`: the predicate, its scope, the range of moments, and the search strategy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from replaydbg.debugger import Session
from replaydbg.debugger.bisection import predicates
from replaydbg.debugger.bisection.bisect_results import Bisected, Probe
from replaydbg.debugger.bisection.predicates import Predicate
from replaydbg.debugger.bisection.run_bisection import Bisection, begin_bisection
from replaydbg.errors import UsageError

KINDS = ("bad", "check", "raises", "function", "invariant", "output")
"""Kinds of predicates (default: --bad)."""

BEHIND = (
    "--frame FUNC or --in MODULE, --only-at PLACE, --from MOMENT, --to MOMENT, one of --linear, --permanent and --all"
)
"""Options that may precede or follow it."""

USAGE = f"bisect [--check | --raises | --function | --invariant | --output] WHAT [{BEHIND}]"

_OPTION = (
    rf"--(?:(?P<flag>linear|permanent|all|{'|'.join(KINDS)})|(?P<name>in|frame|only-at|from|to)(?:=|\s+)(?P<value>\S+))"
)
_BEFORE = re.compile(rf"\s*{_OPTION}(?=\s|\Z)")
_AFTER = re.compile(rf"(?:\A|\s){_OPTION}\s*\Z")
_UNKNOWN = re.compile(r"\s(--[a-z]\S*)\s*\Z")
OPTIONS = tuple(f"--{name}" for name in (*KINDS, "in", "frame", "only-at", "from", "to", "linear", "permanent", "all"))
"""Every option of a search."""

_SCOPED: dict[str, Callable[..., Predicate]] = {
    "bad": predicates.bad_if,
    "check": predicates.check,
    "raises": predicates.raises,
    "function": predicates.function,
}
_OTHERS: dict[str, Callable[[str], Predicate]] = {"invariant": predicates.invariant, "output": predicates.output}


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """The arguments of a search."""

    predicate: Predicate
    first: str | None
    """From which moment on; None: from the start."""
    last: str | None
    """Up to which one; None: up to the failure, or the end."""
    only_at: str
    """The one place at which it is evaluated; empty: every line."""
    is_linear: bool
    """Whether to check every line."""
    is_permanent: bool
    """Whether what is looked for lasts to the end of the search."""
    is_all: bool
    """Whether to list every change, to bad and back to good."""

    def search(self, session: Session, report: Callable[[Probe], None] | None = None) -> Bisection:
        """Begin the search. Raises UsageError, NoSuchMoment."""
        return begin_bisection(session, self.predicate, self.first, self.last, report, self.only_at)

    def found(self, search: Bisection) -> Bisected:
        """Return what it finds."""
        return search.scan() if self.is_linear else search.permanent() if self.is_permanent else search.run()


def predicate_of(kind: str, text: str, *, module: str = "", frame: str = "") -> Predicate:
    """Return the predicate of one of KINDS. Raises UsageError for what makes no sense."""
    if module and frame:
        raise UsageError("--in and --frame cannot be combined (a frame sees the names of its module, too).")
    if kind in _SCOPED:
        return _SCOPED[kind](text, module=module or "__main__", frame=frame)
    if module or frame:
        raise UsageError("--in and --frame are for expressions and functions.")
    return _OTHERS[kind](text)


def behind_options(text: str) -> int:
    """Return where WHAT begins in `[options] WHAT`."""
    at = 0
    while found := _BEFORE.match(text, at):
        at = found.end()
    return at


def parse_search(text: str, kind: str = "bad") -> SearchRequest:
    """Return the search of `WHAT [options]`: options of `replaydbg bisect snapshots`, before or after WHAT.

    `kind` is the default kind. Raises UsageError.
    """
    given: dict[str, str] = {}
    while found := _BEFORE.match(text) or _AFTER.search(text):
        name = found["name"] or found["flag"]
        name, value = ("kind", name) if name in KINDS else (name, found["value"] or "yes")
        if given.setdefault(name, value) != value:
            raise UsageError(
                f"--{given[name]} and --{value} cannot be combined." if name == "kind" else f"--{name} is given twice."
            )
        text = text[: found.start()] + text[found.end() :]
    unknown = _UNKNOWN.search(f" {text}")
    if unknown is not None:
        word = unknown[1]
        lacks = word in ("--in", "--frame", "--only-at", "--from", "--to")
        raise UsageError(f"{word} needs a value: {BEHIND}." if lacks else f"Unknown option {word}: {BEHIND}.")
    if not text.strip():
        raise UsageError(f"usage: {USAGE}")
    if len(given.keys() & {"linear", "permanent", "all"}) > 1:
        raise UsageError("--linear, --permanent and --all cannot be combined.")
    return SearchRequest(
        predicate_of(given.get("kind", kind), text.strip(), module=given.get("in", ""), frame=given.get("frame", "")),
        given.get("from"),
        given.get("to"),
        given.get("only-at", ""),
        "linear" in given,
        "permanent" in given,
        "all" in given,
    )
