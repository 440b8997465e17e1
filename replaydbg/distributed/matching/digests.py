"""Combine the digests of bytes: H(a + b) = H(a) * DIGEST_BASE^len(b) + H(b), modulo a prime."""

from __future__ import annotations

from replaydbg.events.transfers import DIGEST_BASE, DIGEST_MODULUS

PRIME = DIGEST_MODULUS

_MOST_KEPT = 1 << 16


class Powers(dict[int, int]):
    """DIGEST_BASE to the power of each length that was asked for: programs send few different ones."""

    def __missing__(self, length: int) -> int:
        if len(self) > _MOST_KEPT:
            self.clear()
        found = self[length] = pow(DIGEST_BASE, length, PRIME)
        return found
