# mypy: ignore-errors
# ruff: noqa
"""Something for cProfile: a few functions that sort, hash and read a file."""

import hashlib
import random
from pathlib import Path


def shuffled(count):
    numbers = list(range(count))
    random.shuffle(numbers)
    return numbers


def digests(numbers):
    return sorted(hashlib.sha256(str(number).encode()).hexdigest() for number in numbers)


def main():
    print(digests(shuffled(500))[0], len(Path("three.txt").read_text()))


main()
