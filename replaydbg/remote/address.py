"""Addresses of recordings that are kept elsewhere, such as `s3://bucket/team/run-12`."""

from __future__ import annotations

import re

from replaydbg.classes import NamedTuple
from replaydbg.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+=@-]{0,99}")
_LOCAL = ("file", "local")
"""The protocols of fsspec for directories of this machine."""
_CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")


class Address(NamedTuple):
    """The address of one recording, or of a process in a group."""

    store: str
    """The URL of the remote store."""
    name: str
    """The recording's name in it."""
    process: int = 0
    """The number of a process in a group; 0: none was named."""

    def __str__(self) -> str:
        """Return it as users write it, without credentials."""
        return f"{shown(self.store)}/{self.name}" + (f"/{self.process}" if self.process else "")


def is_address(text: str) -> bool:
    """Whether a text is meant as an address, and not as a path or a name in the store."""
    return "://" in text


def shown(url: str) -> str:
    """Return a URL as it may be printed: without the credentials that it may have."""
    return _CREDENTIALS.sub("", url)


def parse_store(text: str) -> str:
    """Return the URL of a remote store. Raises UsageError."""
    protocol, separator, rest = text.partition("://")
    if separator and protocol in _LOCAL and "::" not in text:
        return f"{protocol}://{_directory(text, protocol, rest)}"
    if not protocol or not rest.strip("/") or "::" in text:
        raise UsageError(f"{shown(text)!r} is not the address of a remote store, such as s3://bucket/team.")
    return text.rstrip("/")


def _directory(text: str, protocol: str, rest: str) -> str:
    """Return the path in the URL `text` of a directory of this machine. Raises UsageError."""
    # RFC 8089: a host is before the path, and only that of this machine can be meant. fsspec takes it for the first
    # directory of a relative path.
    path = rest.removeprefix("localhost") if rest.startswith("localhost/") else rest
    if path.startswith("/") and path.strip("/"):
        return path.rstrip("/")
    if path.startswith("/"):
        problem = "is the root directory, which cannot be a remote store"
    elif shown(text) != text:
        problem = "has a user name before its path"
    else:
        problem = "must have an absolute path"
    raise UsageError(f"{shown(text)!r} {problem}: write {protocol}:///DIRECTORY (three slashes).")


def parse_address(text: str) -> Address:
    """Return the address of a recording: `URL/NAME`, or `URL/NAME/3`. Raises UsageError."""
    parts = text.rstrip("/").split("/")
    process = int(parts.pop()) if parts[-1].isascii() and parts[-1].isdigit() and len(parts[-1]) < 8 else 0
    store, name = "/".join(parts[:-1]), parts[-1]
    if "://" not in store or not _NAME.fullmatch(name):
        raise UsageError(f"{shown(text)!r} is not the address of a recording, such as s3://bucket/team/run-12.")
    return Address(parse_store(store), name, process)


def check_name(name: str) -> str:
    """Return the name of a recording for a remote store. Raises UsageError for one that no address can have."""
    if not is_name(name):
        raise UsageError(
            f"{name!r} cannot be a name in a remote store: use letters, digits and any of '._+=@-', not digits alone, "
            "and no ending '.rdbg' or '.rdbgs'."
        )
    return name


def is_name(name: str) -> bool:
    """Whether an address can have this name: one of digits alone would be a process of a group."""
    return bool(_NAME.fullmatch(name)) and not name.isdigit() and not name.endswith((".rdbg", ".rdbgs"))
