"""Plain values as bytes, as docs/reference/format.md has them: reading that costs no more than its length."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def encoded(value: Any) -> bytes:
    """A plain value as docs/reference/format.md has it: reading that costs no more than its length."""
    if value is None or value is False or value is True:
        return b"\x00" if value is None else b"\x02" if value else b"\x01"
    if isinstance(value, int):
        plain = int.__index__(value)
        if -(1 << 63) <= plain < 1 << 63:
            return b"\x03" + number(plain << 1 if plain >= 0 else ~(plain << 1))
        size = plain.bit_length() // 8 + 1
        return b"\x04" + number(size) + plain.to_bytes(size, "little", signed=True)
    if isinstance(value, (str, bytes)):
        data = str.encode(value, "utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
        return (b"\x06" if isinstance(value, str) else b"\x07") + number(len(data)) + data
    if isinstance(value, (list, tuple)):
        return (b"\x09" if isinstance(value, list) else b"\x08") + number(len(value)) + b"".join(map(encoded, value))
    if isinstance(value, dict):
        parts = b"".join(encoded(each) for item in value.items() for each in item)
        return b"\x0a" + number(len(value)) + parts
    return encoded(f"<{type(value).__qualname__}>")


def number(value: int) -> bytes:
    """A number from 0 to 2**64 - 1, seven bits a byte."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
