# mypy: ignore-errors
# ruff: noqa
"""A consumer waits for a hundredth of a second: the producer comes later in some runs."""

import queue
import random
import threading
import time

channel: queue.Queue[int] = queue.Queue()


def produce() -> None:
    time.sleep(random.uniform(0, 0.02))
    channel.put(1)


producer = threading.Thread(target=produce, name="producer")
producer.start()
try:
    channel.get(timeout=0.01)
    is_there = True
except queue.Empty:
    is_there = False
producer.join()
print(is_there)
assert is_there, "nothing came in time"
