"""The marker that travels in a channel between the messages of the program, and the identity of a snapshot."""

from __future__ import annotations

from replaydbg.classes import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


@dataclass(frozen=True, slots=True)
class Marker:
    """All messages before it were sent before the sender recorded its state, all behind it afterwards."""

    initiator: str
    """The agent that began the snapshot."""
    number: int
    """Which of the initiator's snapshots it is, from 1. No clock and no id: a replay has the same numbers."""

    @property
    def snapshot(self) -> str:
        """The identity of the snapshot, such as `X#1`."""
        return f"{self.initiator}#{self.number}"


_MESSAGE, _MARKER = b"m", b"s"


def to_bytes(item: Any, encode: Callable[[Any], bytes] | None) -> bytes:
    """Return a message or a marker as bytes. Raises TypeError for a message that is not bytes, if `encode` is None."""
    if isinstance(item, Marker):
        return _MARKER + f"{item.number}:{item.initiator}".encode()
    data = item if encode is None else encode(item)
    if not isinstance(data, bytes | bytearray | memoryview):
        remedy = "give the channel encode= and decode=" if encode is None else "encode must return bytes"
        raise TypeError(f"this channel carries bytes, and the message is of type {type(data).__name__}: {remedy}")
    return _MESSAGE + bytes(data)


def from_bytes(data: bytes, decode: Callable[[bytes], Any] | None) -> Any:
    """Return what `to_bytes` was given. Raises ValueError if the bytes are not from it."""
    kind, content = data[:1], data[1:]
    if kind == _MARKER:
        number, _, initiator = content.decode().partition(":")
        return Marker(initiator, int(number))
    if kind != _MESSAGE:
        raise ValueError(f"bytes that no agent sent arrived in a channel of agents: {data[:20]!r}")
    return content if decode is None else decode(content)
