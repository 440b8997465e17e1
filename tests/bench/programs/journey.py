"""A program to travel through: a ledger is worked on round by round, and in the last one the program fails.

Arguments: rounds of about a thousand lines, crossings in each, objects that live to the end (at least one), rounds
between two garbage collections (0: none are asked for).
"""

import gc
import os
import random
import sys
import time
from collections.abc import Iterator

ROUNDS = 0
OPENED = "long ago"


class Account:
    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.balance = 0
        self.history: list[int] = []

    def move(self, amount: int) -> None:
        self.balance += amount
        self.history.append(amount)
        if len(self.history) > 100:
            del self.history[:50]


class Entry:
    def __init__(self, number: int) -> None:
        self.number = number
        self.name = f"entry {number}"
        self.parts = [number, number + 1]


def outside(number: int, zeros: int) -> int:
    """One crossing, of several kinds in turn."""
    which = number % 4
    if which == 0:
        return int(time.time()) & 1
    if which == 1:
        return int(time.monotonic()) & 1
    if which == 2:
        return len(os.read(zeros, 8))
    return random.SystemRandom().getrandbits(8)


def odd(count: int) -> Iterator[int]:
    for number in range(count):
        if number % 2:
            yield number


def fibonacci(number: int) -> int:
    if number < 2:
        return number
    return fibonacci(number - 1) + fibonacci(number - 2)


def sums(counts: dict[str, int], number: int) -> int:
    total = 0
    for step in range(100):
        twice = step * 2
        if twice % 7 == 3:
            total += twice
        else:
            total -= 1
    for each in odd(40):
        total += each
    # Another number in each round: a value that is written again as it was has not changed.
    total += number
    counts["total"] = total
    counts[f"key {number % 500}"] = number
    return total


def caught(number: int) -> int:
    try:
        if number % 3 == 0:
            raise ValueError(number)
        return number
    except ValueError:
        return 0


def work(account: Account, counts: dict[str, int], number: int) -> int:
    global ROUNDS
    ROUNDS += 1
    total = sums(counts, number)
    account.move(total)
    for step in range(12):
        total += caught(step)
    fresh = [Entry(step) for step in range(12)]
    fresh.sort(key=lambda entry: -entry.number)
    return total + len(fresh) + fibonacci(8)


def grown(objects: int) -> list[Entry]:
    return [Entry(number) for number in range(objects)]


def main(rounds: int, crossings: int, alive: list[Entry], collect_every: int) -> None:
    opened = "long ago"
    accounts = {name: Account(name) for name in ("ann", "bob", "cid")}
    counts = {"opened": 1, "total": 0}
    zeros = os.open("/dev/zero", os.O_RDONLY)
    for number in range(rounds):
        total = work(accounts["ann"], counts, number)
        for step in range(crossings):
            total += outside(step, zeros)
        alive[number * 7919 % len(alive)].number = total
        if number % 1000 == 0:
            accounts["cid"].owner = f"cid {number}"
        if collect_every and number % collect_every == 0:
            gc.collect()
    raise RuntimeError(f"{opened}, {total}")


if __name__ == "__main__":
    _rounds, _crossings, _objects, _collect_every = map(int, sys.argv[1:])
    main(_rounds, _crossings, grown(_objects), _collect_every)
