"""Copy states and messages at the moment at which they are recorded."""

from __future__ import annotations

import copy

from replaydbg.classes import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_DEEPEST = 20
"""How many containers deep the part that cannot be copied is looked for."""


@dataclass(frozen=True, slots=True)
class Uncopied:
    """Stands in a snapshot for a state or a message that could not be copied."""

    reason: str
    """Stands for a value that could not be copied, with the reason."""


def copied_state(state: Callable[[], Any]) -> Any:
    """Return a deep copy of an agent's state, or Uncopied."""
    try:
        value = state()
    except Exception as error:  # noqa: BLE001 - the program's function: what it raises is the reason
        return Uncopied(f"the state function raised {_text(error)}")
    return copied(value, "state")


def copied(value: Any, name: str) -> Any:
    """Return a deep copy of a value, or Uncopied; `name` is what its reason calls the value."""
    try:
        return copy.deepcopy(value)
    except Exception as error:  # noqa: BLE001 - copying calls methods of the program's classes
        return Uncopied(_reason(value, name, error))


def _reason(value: Any, path: str, error: Exception) -> str:
    for _ in range(_DEEPEST):
        for part, inner in _parts(value, path):
            try:
                copy.deepcopy(inner)
            except Exception as found:  # noqa: BLE001 - as above
                value, path, error = inner, part, found
                break
        else:
            break
    return f"{path} cannot be copied: {_text(error)}"


def _parts(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"{path}[{key!r}]", inner) for key, inner in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"{path}[{at}]", inner) for at, inner in enumerate(value))
    elif isinstance(getattr(value, "__dict__", None), dict) and not hasattr(value, "__deepcopy__"):
        yield from ((f"{path}.{name}", inner) for name, inner in vars(value).items())


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
