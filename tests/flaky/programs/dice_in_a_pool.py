# mypy: ignore-errors
# ruff: noqa
"""A pool of threads adds up what one thread had drawn before it began: what was drawn decides, and no order."""

import random
from concurrent.futures import ThreadPoolExecutor

drawn = [random.randint(1, 6) for _ in range(2)]
with ThreadPoolExecutor(2) as pool:
    doubled = list(pool.map(lambda number: 2 * number, drawn))
print(doubled)
assert sum(doubled) > 8, "nobody had thought of low numbers"
