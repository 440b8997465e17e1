# mypy: ignore-errors
# ruff: noqa
"""Results are taken in the order in which the threads of a pool finish: the first one is not always the first job's."""

import random
import time
from concurrent.futures import ThreadPoolExecutor, as_completed


def work(number: int) -> int:
    time.sleep(random.uniform(0, 0.01))
    return number


with ThreadPoolExecutor(3) as pool:
    done = [each.result() for each in as_completed([pool.submit(work, number) for number in range(3)])]
print(done)
assert done[0] == 0, "the first result is another job's"
