# mypy: ignore-errors
# ruff: noqa
"""Two threads draw a random number each, always in the same order: what was drawn decides, and not who drew."""

import random
import threading
import time

drawn: dict[str, float] = {}


def draw(name: str) -> None:
    time.sleep(0.001)
    drawn[name] = random.random()


threads = [threading.Thread(target=draw, args=(name,), name=name) for name in ("left", "right")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(drawn)
assert drawn["left"] + drawn["right"] > 0.6, "too little was drawn"
