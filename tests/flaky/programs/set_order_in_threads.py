# mypy: ignore-errors
# ruff: noqa
"""Threads work on parts of a set: which name comes first is decided by the hash seed, before any thread runs."""

import threading

names = {"ann", "bob", "cem", "dee"}
order = list(names)
lengths = {}


def measure(part: list[str]) -> None:
    for name in part:
        lengths[name] = len(name)


threads = [threading.Thread(target=measure, args=(part,)) for part in (order[:2], order[2:])]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(order)
assert order[0] != "ann", "ann comes first"
