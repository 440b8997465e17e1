"""Messages as bytes: a header with the length of a body, and the body in JSON.

The client may send anything. Bytes that are not a message are skipped up to the next header, which cannot be inside a
message: JSON has no line ends within a text, and no such text outside of one.
"""

from __future__ import annotations

import json
import re

from replaydbg.classes import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST_BYTES = 16 << 20
"""The longest message that is accepted: an editor sends some kilobytes."""

MOST_HEADER = 4096
"""Bytes without a complete header after which something else than a message has arrived."""

_OTHER_FIELD = rb"(?:[!-9;-~]+:[^\r\n]*\r?\n)*"
_HEADER = re.compile(rb"Content-Length:[ \t]*([0-9]{1,20})[ \t]*\r?\n" + _OTHER_FIELD + rb"\r?\n", re.I)
_BEFORE = re.compile(_OTHER_FIELD)
"""Header fields that may precede the length."""
_BLANK = re.compile(rb"\r?\n\r?\n")


@dataclass(frozen=True, slots=True)
class DamagedMessage:
    """Bytes that are not a message."""

    reason: str
    """In words, for the client."""


def encoded_message(message: dict[str, Any]) -> bytes:
    """Return a message with its header. Only ASCII: a recorded text may have lone surrogates."""
    body = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class MessageDecoder:
    """Finds messages in a stream of bytes. It never raises for what they contain, and keeps at most one message."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._searched = 0
        """How much of an incomplete body is known to have no header in it."""
        self._is_lost = False
        """Whether the last bytes were damaged, which was reported: what follows is skipped without a word."""

    def feed(self, data: bytes) -> Iterator[dict[str, Any] | DamagedMessage]:
        """Take the next bytes; yield the messages that they complete, and one report for each damaged stretch."""
        self._bytes += data
        while True:
            self._drop(len(self._bytes) - len(self._bytes.lstrip()))  # some clients end a message with a line end
            header = _HEADER.search(self._bytes)
            found = self._without_header() if header is None else self._behind(header)
            if found is None:
                return
            if isinstance(found, DamagedMessage):
                if self._is_lost:
                    continue
                self._is_lost = True
            else:
                self._is_lost = False
            yield found

    def end(self) -> DamagedMessage | None:
        """Return a report about what is left when the stream has ended; None: nothing is."""
        if not self._bytes or self._is_lost:
            return None
        return DamagedMessage("The stream ended in the middle of a message.")

    def _without_header(self) -> DamagedMessage | None:
        """Drop what cannot become a header any more; None: there is nothing to drop."""
        blank = _BLANK.search(self._bytes)
        if blank is not None:
            self._drop(blank.end())
            return DamagedMessage("A header needs `Content-Length: N`, with N in digits.")
        if len(self._bytes) > MOST_HEADER:
            self._drop(len(self._bytes) - MOST_HEADER // 2)
            return DamagedMessage(f"No header within {MOST_HEADER:,} bytes.")
        return None

    def _behind(self, header: re.Match[bytes]) -> dict[str, Any] | DamagedMessage | None:
        """Return the message that a header announces, or what is wrong; None: more bytes are needed."""
        before = _BEFORE.match(self._bytes)
        assert before is not None, "it matches no bytes, too"
        if before.end() < header.start():
            # A field may begin in the middle of the garbage: only what was skipped is reported.
            self._drop(header.start())
            return DamagedMessage("Bytes between two messages were skipped.")
        first, length = header.end(), int(header[1])
        if length > MOST_BYTES:
            self._drop(first)
            return DamagedMessage(f"A message may have {MOST_BYTES:,} bytes (got {length:,}).")
        if len(self._bytes) - first < length:
            return self._cut_short(first)
        message = _read(bytes(self._bytes[first : first + length]))
        # A wrong length may have taken the beginning of the next message: what is no JSON is searched once more.
        self._drop(first if isinstance(message, DamagedMessage) else first + length)
        return message

    def _cut_short(self, first: int) -> DamagedMessage | None:
        # A header may have begun in what was searched before.
        following = _HEADER.search(self._bytes, max(first, self._searched - MOST_HEADER))
        if following is None:
            self._searched = len(self._bytes)
            return None
        self._drop(following.start())
        return DamagedMessage("A message was cut short: the next one began before its end.")

    def _drop(self, number: int) -> None:
        if number:
            del self._bytes[:number]
            self._searched = 0


def _read(body: bytes) -> dict[str, Any] | DamagedMessage:
    try:
        message = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        return DamagedMessage(f"A message must be UTF-8: {error.reason} at byte {error.start}.")
    except RecursionError:
        return DamagedMessage("A message is nested too deeply.")
    except ValueError as error:
        return DamagedMessage(f"A message must be JSON: {error}.")
    if not isinstance(message, dict):
        return DamagedMessage("A message must be a JSON object.")
    return message
