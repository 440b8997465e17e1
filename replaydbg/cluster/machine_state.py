"""The state of files of a machine, in a form that is compared with that on another one."""

from __future__ import annotations

import hashlib
from pathlib import Path

from replaydbg.commits.depends import CONTENT, Dependency, state_of

_digests: dict[tuple[str, int, int], str] = {}
"""A cache: many recordings load the same modules."""


def digest_of(path: str) -> str:
    """Return a digest of a file; empty: it is not there, or cannot be read."""
    try:
        about = Path(path).stat()
        key = (path, about.st_size, about.st_mtime_ns)
        if key not in _digests:
            with open(path, "rb") as file:  # noqa: PTH123 - a path of a recording, as text
                _digests[key] = hashlib.file_digest(file, "sha256").hexdigest()[:32]
        return _digests[key]
    except (OSError, ValueError):
        return ""


def state_between_machines(dependency: Dependency) -> str:
    """Return a text that is equal on another machine if this aspect of the path is.

    `state_of` compares large files by their times, which differ between machines.
    """
    digest = digest_of(dependency.path) if dependency.aspect == CONTENT else ""
    return digest or state_of(dependency)
