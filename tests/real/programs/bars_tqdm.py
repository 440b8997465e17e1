# mypy: ignore-errors
# ruff: noqa
"""tqdm: nested bars over a computation; the monitor thread is off."""

import random

from tqdm import tqdm, trange

tqdm.monitor_interval = 0
total = 0
for number in tqdm(range(5), desc="outer"):
    for _ in trange(2000, desc=f"inner {number}", leave=False):
        total += random.random()
    tqdm.write(f"{number}: {total:.6f}")
