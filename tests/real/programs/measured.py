# mypy: ignore-errors
# ruff: noqa
"""cProfile around a part of the program, read with pstats: its own clock is in C."""

import cProfile
import pstats
import random
import time
from pathlib import Path


def shuffled(count):
    numbers = list(range(count))
    random.shuffle(numbers)
    return numbers


def measure():
    started = time.perf_counter()
    numbers = sorted(shuffled(300), key=str)
    return numbers, time.perf_counter() - started, Path("three.txt").read_text()


with cProfile.Profile() as profile:
    for _ in range(20):
        measure()
pstats.Stats(profile).strip_dirs().sort_stats("cumulative", "name").print_stats(12)
