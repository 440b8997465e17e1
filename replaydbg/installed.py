"""Which files belong to the interpreter or to installed packages, by their names: see code_is_library() in codes.c."""

from __future__ import annotations

STANDARD = ("/lib/python3.", "/lib64/python3.")
"""Parts of the names of files of the standard library, and of most packages."""

PACKAGES = ("/site-packages/", "/dist-packages/")
"""Parts of the names of files of installed packages; Debian has the second for its own."""


def is_installed(file: str) -> bool:
    """Return whether a file is a part of the standard library or of an installed package."""
    return any(part in file for part in (*STANDARD, *PACKAGES))


def is_standard(file: str) -> bool:
    """Return whether a file is a part of the standard library: not of a package, nor of the program."""
    return file.startswith("<frozen ") or (is_installed(file) and not any(part in file for part in PACKAGES))
