"""Everyday code: dictionaries, instances, closures, sorting, JSON, exceptions; a little of it hashes by identity."""

import json
from collections.abc import Callable


class Account:
    """A thing with methods."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.amount = 0.0

    def add(self, amount: float) -> float:
        """Books an amount."""
        self.amount += amount
        return self.amount


def adder(step: int) -> Callable[[int], int]:
    """Returns a closure."""
    return lambda number: number + step


def one_round(words: list[str], accounts: list[Account]) -> int:
    """A bit of everything."""
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    total = sum(account.add(1.5) for account in accounts)
    by_account = {account: account.number for account in accounts[:100]}
    seen = {type(value) for value in (1, "a", 1.5, None, accounts, counts)} | set(by_account)
    ordered = sorted(counts, key=lambda word: (len(word), word))
    copy = json.loads(json.dumps({"words": ordered[:200], "numbers": [1.5 * number for number in range(200)]}))
    for word in ("1", "x", "2"):
        try:
            total += adder(3)(int(word))
        except ValueError:
            total += 1
    return int(total) + len(seen) + len(" ".join(ordered)) + len(copy)


def main() -> None:
    """Two thousand rounds."""
    words = [str(number * 7919 % 1000) for number in range(2000)]
    accounts = [Account(number) for number in range(1000)]
    print(sum(one_round(words, accounts) for _ in range(2000)))


main()
