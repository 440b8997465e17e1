# mypy: ignore-errors
# ruff: noqa
"""A cache that is filled and cleared by two threads, with random keys: what was in it may be gone when it is read."""

import random
import threading

cache: dict[int, int] = {}
lost = []


def use() -> None:
    dice = random.Random()
    for _ in range(8):
        key = dice.randrange(3)
        cache[key] = key
        try:
            cache[key]
        except KeyError:
            lost.append(key)


def clear() -> None:
    for _ in range(8):
        cache.clear()


threads = [threading.Thread(target=use, name="user"), threading.Thread(target=clear, name="cleaner")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(lost)
assert not lost, "an entry was gone"
