"""300,000 rounds of random.random, getrandbits, choice, uuid.uuid4 and os.urandom."""

import os
import random
import uuid


def main() -> None:
    """Folds all that it draws into one number."""
    folded = 0
    total = 0.0
    letters = "abcdefghijklmnop"
    for _ in range(300_000):
        total += random.random()
        folded ^= random.getrandbits(64)
        folded ^= ord(random.choice(letters))
        folded ^= uuid.uuid4().int
        folded ^= int.from_bytes(os.urandom(16), "little")
    print(folded, total)


main()
