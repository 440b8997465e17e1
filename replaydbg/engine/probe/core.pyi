# What the C core lends the probe: see engine_probe() in replaydbg/native/engine/engine.c.
from collections.abc import Callable
from types import CodeType
from typing import Any

builtins: dict[str, Any]
"""The names of the program's builtins."""

def object_at(address: int, kind: int) -> Any:
    """Return the object of a type at an address. Raises LookupError if there is none now."""

def address_of(value: Any) -> int:
    """Return the address of an object; `id` is what the program sees."""

def field_of(owner: Any, kind: type, value: Any) -> int:
    """Return the offset at which an object has a value in the structure that its type in C declares; 0: none."""

def digest_of(value: Any) -> int:
    """Return a number that equal values have in every run."""

def call_of(function: str, started: int) -> Any:
    """Return the frame of a call; None: there is none, False: there are several."""

def stands_at(file: str, line: int, function: str) -> bool:
    """Whether a line of the program is about to run there; with line 0, the function's first one."""

def judge_lines_by(function: Callable[[], int]) -> None:
    """Call a function before each line from here on; it returns 0 to 2: good, bad, undecided."""

def skip_passages(rules: list[tuple[tuple[str, ...], tuple[int, ...]] | None]) -> None:
    """Skip a break's passages where all its names have values, none at its addresses; a rule for each break."""

def answer_passages_by(function: Callable[[int], bytes | None]) -> None:
    """Call a function where a breakpoint is met, with its number, from 1; what it returns is kept for the debugger."""

def answering_passages() -> Any:
    """Return that function of the last run of this process, or of the one it is a copy of; None: there is none."""

def names_here(names: tuple[str, ...]) -> dict[str, Any] | None:
    """Return those of `names` that the code which is about to run sees, and its builtins; None: it is not known."""

def run(code: CodeType, names: dict[str, Any]) -> Any:
    """Evaluate code in a namespace, without an audit event."""
