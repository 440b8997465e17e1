# mypy: ignore-errors
# ruff: noqa
"""Work that has to be done within a time: sometimes the clock has run out."""

import time

began = time.perf_counter()
total = sum(number * number for number in range(30_000))
used = time.perf_counter() - began
print(total)
assert int(used * 1e6) % 3, "the time was up"
