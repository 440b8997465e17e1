"""Name recordings of remote stores by their addresses, and not by the temporary files with what was fetched of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping


def with_addresses(text: str) -> str:
    """Return a text with addresses in the place of the paths of fetched files."""
    fetched = sys.modules.get("replaydbg.remote.fetched_files")
    # Without the module nothing was fetched. Its import takes fsspec, which few commands need.
    return text if fetched is None else str(fetched.with_addresses(text))


def facts_with_addresses(facts: Mapping[str, object]) -> Mapping[str, object]:
    """Return data for JSON with addresses in their place."""
    if "replaydbg.remote.fetched_files" not in sys.modules:
        return facts
    return {name: _replaced(each) for name, each in facts.items()}


def _replaced(value: object) -> object:
    if isinstance(value, str):
        return with_addresses(value)
    if isinstance(value, Mapping):
        return facts_with_addresses(value)
    return [_replaced(each) for each in value] if isinstance(value, list | tuple) else value
