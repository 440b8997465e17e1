"""The digest that an event has of the bytes that left the program, see format.md, section 4.1."""

from __future__ import annotations

_ALL = (1 << 64) - 1
_K0, _K1, _K2 = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7


def output_digest(data: bytes) -> bytes:
    """Return the 4 bytes that identify `data`, as the core computes them (`hash_bytes` in native/base).

    Of a call that writes several buffers (`os.writev`) the digest is another one.
    """
    whole = _hash(data)
    return ((whole ^ whole >> 32) & 0xFFFF_FFFF).to_bytes(4, "little")


def _fold(one: int, other: int) -> int:
    product = one * other
    return (product ^ product >> 64) & _ALL


def _hash(data: bytes) -> int:
    size = len(data)
    words = memoryview(data[: size // 8 * 8]).cast("Q")
    first = _fold(size ^ _K0, _K1)
    second = first ^ _K2
    used = len(words) // 4 * 4
    for index in range(0, used, 4):
        first = _fold(words[index] ^ _K1, words[index + 1] ^ first)
        second = _fold(words[index + 2] ^ _K2, words[index + 3] ^ second)
    if used:
        first = _fold(first ^ _K0, second ^ _K1)
    for word in words[used:]:
        first = _fold(word ^ _K1, first ^ _K0)
    tail = int.from_bytes(data[size // 8 * 8 :], "little")
    return _fold(first ^ _K0, _fold(tail ^ _K2, size ^ _K1))
