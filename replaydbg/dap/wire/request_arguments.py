"""The arguments of a request, which a client may have sent in any form."""

from __future__ import annotations

from replaydbg.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeVar

    _T = TypeVar("_T")


class RequestArguments:
    """Typed access to an object of JSON. Each method raises UsageError for a value of another type."""

    def __init__(self, values: Mapping[str, Any], name: str = "arguments") -> None:
        """`name`: what it is called in messages."""
        self._values, self._name = values, name

    def has(self, key: str) -> bool:
        """Whether there is a value, which is not null."""
        return self._values.get(key) is not None

    def text(self, key: str, default: str = "") -> str:
        """Return a string."""
        return self._typed(key, str, "a string", default)

    def needed_text(self, key: str) -> str:
        """Return a string that must be given, and not be empty."""
        found = self.text(key)
        if not found:
            raise UsageError(f"{self._name} needs {key!r}.")
        return found

    def number(self, key: str, default: int = 0) -> int:
        """Return a whole number that is not negative."""
        found = self._typed(key, int, "a number", default)
        if isinstance(found, bool) or found < 0:
            raise UsageError(f"{key} must be a number from 0 on (got {found!r}).")
        return found

    def needed_number(self, key: str) -> int:
        """Return a number that must be there."""
        if not self.has(key):
            raise UsageError(f"{self._name} needs {key!r}.")
        return self.number(key)

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a truth value."""
        return self._typed(key, bool, "true or false", default)

    def texts(self, key: str) -> list[str]:
        """Return a list of strings."""
        found = self._typed(key, list, "a list", [])
        if not all(isinstance(each, str) for each in found):
            raise UsageError(f"{key} must be a list of strings.")
        return found

    def objects(self, key: str) -> list[RequestArguments]:
        """Return a list of objects."""
        found = self._typed(key, list, "a list", [])
        if not all(isinstance(each, dict) for each in found):
            raise UsageError(f"{key} must be a list of objects.")
        return [RequestArguments(each, key) for each in found]

    def object(self, key: str) -> RequestArguments:
        """Return an object; an empty one if there is none."""
        return RequestArguments(self._typed(key, dict, "an object", {}), key)

    def mapping(self, key: str) -> dict[str, str | None]:
        """Return an object of strings, or nulls."""
        found = self._typed(key, dict, "an object", {})
        if not all(each is None or isinstance(each, str) for each in found.values()):
            raise UsageError(f"{key} must be an object of strings, or nulls.")
        return found

    def _typed(self, key: str, kind: type[_T], expected: str, default: _T) -> _T:
        found = self._values.get(key)
        if found is None:
            return default
        if not isinstance(found, kind):
            raise UsageError(f"{key} must be {expected} (got {_shown(found)}).")
        return found


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
