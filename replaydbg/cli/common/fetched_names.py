"""Name recordings of remote stores by their addresses, and not by the temporary files with what was fetched of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping


def with_addresses(text: str) -> str:
    """Return a text with addresses in the place of the paths of fetched files."""
    fetched = sys.modules.get("replaydbg.remote.fetched_files")
    # Without the module nothing was fetched. Its import takes fsspec, which few commands need.
    return text if fetched is None else str(fetched.with_addresses(text))


def json_with_addresses(facts: Mapping[str, object], indent: int | None = None) -> str:
    """Return facts as JSON, with addresses in the place of the paths."""
    import json  # only JSON output needs it

    text = json.dumps(facts, indent=indent)
    fetched = sys.modules.get("replaydbg.remote.fetched_files")
    # They are replaced in the text: the facts may be nested as deep as Python's stack allows.
    return text if fetched is None else str(fetched.with_addresses(text, lambda each: json.dumps(each)[1:-1]))
