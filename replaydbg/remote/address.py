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
    protocol, _, rest = text.partition("://")
    if not protocol or not rest.strip("/") or "::" in text:
        raise UsageError(f"{shown(text)!r} is not the address of a remote store, such as s3://bucket/team.")
    if protocol in _LOCAL:
        # RFC 8089: a host is before the path, and only that of this machine can be meant. fsspec takes it for the
        # first directory of a relative path.
        rest = rest.removeprefix("localhost") if rest.startswith("localhost/") else rest
        if not rest.startswith("/") or not rest.strip("/"):
            raise UsageError(
                f"{shown(text)!r} has something other than a directory of this machine after {protocol}://: write "
                f"{protocol}:///DIRECTORY, with three slashes."
            )
        return f"{protocol}://{rest.rstrip('/')}"
    return text.rstrip("/")


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
