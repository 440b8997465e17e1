"""Mutations of bytes without known structure, and of whole numbers."""

from collections.abc import Callable
from random import Random

EDGES = (0, 1, 2, 3, 7, 8, 63, 64, 127, 128, 255, 256, 4095, 4096, 65535, 65536, 1 << 20, (1 << 31) - 1, 1 << 31)
WIDE = ((1 << 32) - 1, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
"""Numbers at limits: of a byte, a page, a C type."""


def number(rng: Random, near: int = 0) -> int:
    """Return a promising number from 0 on; often one next to `near`."""
    way = rng.randrange(4)
    if way == 0:
        return max(0, near + rng.choice((-2, -1, 1, 2, 8, -8)))
    if way == 1:
        return rng.choice(EDGES)
    if way == 2:
        return rng.choice(WIDE)
    return rng.getrandbits(rng.choice((3, 7, 8, 14, 16, 31, 32, 64)))


def _flip(data: bytearray, rng: Random) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(data: bytearray, rng: Random) -> None:
    data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _insert(data: bytearray, rng: Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.choice((1, 1, 2, 4, 8, 40)))


def _delete(data: bytearray, rng: Random) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice((1, 1, 2, 4, 8, 40, 400))]


def _repeat(data: bytearray, rng: Random) -> None:
    at = rng.randrange(len(data))
    piece = data[at : at + rng.choice((1, 2, 4, 8, 40))]
    data[at:at] = piece * rng.choice((1, 2, 3, 30))


def _overwrite(data: bytearray, rng: Random) -> None:
    width = rng.choice((1, 2, 4, 8))
    at = rng.randrange(len(data))
    data[at : at + width] = (number(rng) & (1 << 8 * width) - 1).to_bytes(width, rng.choice(("little", "big")))


def _copy(data: bytearray, rng: Random) -> None:
    at, to = rng.randrange(len(data)), rng.randrange(len(data))
    length = rng.choice((1, 4, 16, 100))
    data[to : to + length] = data[at : at + length]


def _cut(data: bytearray, rng: Random) -> None:
    del data[rng.randrange(len(data)) :]


WAYS: tuple[Callable[[bytearray, Random], None], ...] = (
    _flip,
    _flip,
    _set,
    _set,
    _insert,
    _delete,
    _repeat,
    _overwrite,
    _copy,
    _cut,
)


def mutated(data: bytes, rng: Random, *, most: int = 4) -> bytes:
    """Return `data` with one to `most` changes."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, most)):
        if changed:
            rng.choice(WAYS)(changed, rng)
        else:
            changed += rng.randbytes(3)
    return bytes(changed)
