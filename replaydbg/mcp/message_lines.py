"""Messages as bytes: each is a line of JSON. The client may send anything: a line that is not a message is reported."""

from __future__ import annotations

import json

from replaydbg.classes import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES = 4 << 20
"""The longest line that is read: a client sends some kilobytes."""

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
"""Codes of JSON-RPC."""


@dataclass(frozen=True, slots=True)
class DamagedLine:
    """A line that is not JSON."""

    code: int
    reason: str
    """In words, for the client."""


def encoded_line(message: dict[str, object]) -> bytes:
    """Return a message as a line. Only ASCII: an argument that is sent back may have lone surrogates."""
    return json.dumps(message, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


class LineDecoder:
    """Finds messages in a stream of bytes. It never raises for what they contain, and keeps at most one line."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._is_too_long = False
        """Whether the line that has begun was reported: the rest of it is skipped."""

    def feed(self, data: bytes) -> Iterator[object]:
        """Take the next bytes; yield each value that they complete, or a DamagedLine in its place."""
        *ended, rest = data.split(b"\n")
        for each in ended:
            self._bytes += each
            line, self._bytes = bytes(self._bytes), bytearray()
            is_known, self._is_too_long = self._is_too_long, False
            if is_known or not line.strip():
                continue
            yield _too_long() if len(line) > MOST_BYTES else _value(line)
        self._bytes += b"" if self._is_too_long else rest
        if len(self._bytes) > MOST_BYTES:
            self._bytes, self._is_too_long = bytearray(), True
            yield _too_long()

    def end(self) -> DamagedLine | None:
        """Return a report about what is left when the stream has ended; None: nothing is."""
        if not self._bytes.strip():
            return None
        return DamagedLine(PARSE_ERROR, "The stream ended in the middle of a line.")


def _too_long() -> DamagedLine:
    return DamagedLine(INVALID_REQUEST, f"A message may have {MOST_BYTES:,} bytes.")


def _value(line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        return DamagedLine(PARSE_ERROR, f"A message must be UTF-8: {error.reason} at byte {error.start}.")
    except RecursionError:
        return DamagedLine(PARSE_ERROR, "A message is nested too deeply.")
    except ValueError as error:
        return DamagedLine(PARSE_ERROR, f"A message must be a line of JSON: {error}.")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
