"""Names of files as text."""

from __future__ import annotations

from pathlib import PurePath


def short_path(file: str, cwd: str) -> str:
    """Return a file's name as short as it stays clear; `cwd` is the directory in which the program was started."""
    path = PurePath(file)
    if path.is_relative_to(cwd):
        return str(path.relative_to(cwd))
    for mark in ("/site-packages/", "/lib/python3."):
        _, found, rest = file.partition(mark)
        if found:
            return rest if mark == "/site-packages/" else rest.partition("/")[2]
    return file
