"""Compare addresses as two ends of a connection see them: wildcards, and IPv4 written as IPv6."""

from __future__ import annotations

from collections.abc import Container

_MAPPED = "[::ffff:"
_LOOPBACKS = ("127.0.0.1", "[::1]")
_WILDCARDS = ("0.0.0.0", "[::]")


def plain_address(text: str) -> str:
    """Return an address with IPv4 as such: `127.0.0.1:80` for `[::ffff:127.0.0.1]:80`."""
    if text.lower().startswith(_MAPPED) and "." in text:
        host, _, port = text[len(_MAPPED) :].partition("]")
        return host + port
    return text


def is_wildcard(text: str) -> bool:
    """Whether an address names a port alone."""
    return text.rpartition(":")[0] in _WILDCARDS


def known_address(text: str, known: Container[str]) -> str:
    """Return which of the `known` own addresses of sockets `text` reaches; `text` itself if none.

    A socket that is bound to the address itself is preferred to one that is bound to a wildcard.
    """
    if text in known or ":" not in text:
        return text
    host, _, port = text.rpartition(":")
    # An IPv6 socket that is bound to the wildcard takes IPv4, too.
    hosts = _LOOPBACKS if host in _WILDCARDS else ("[::]",) if host.startswith("[") else _WILDCARDS
    return next((found for each in hosts if (found := f"{each}:{port}") in known), text)
