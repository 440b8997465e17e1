# mypy: ignore-errors
# ruff: noqa
"""Two threads add to an index by copying it, adding to the copy and putting it back: one of the two may be forgotten."""

import threading
import time

index: dict[str, float] = {}


def add(name: str) -> None:
    global index
    fresh = dict(index)
    fresh[name] = time.time()
    index = fresh


threads = [threading.Thread(target=add, args=(name,), name=name) for name in ("left", "right")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(index))
assert len(index) == 2, "an entry was forgotten"
