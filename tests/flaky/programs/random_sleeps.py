# mypy: ignore-errors
# ruff: noqa
"""Two threads sleep for random times: the one that wakes first has to be the writer, or the reader finds nothing."""

import random
import threading
import time

page = {}
found = []


def write() -> None:
    time.sleep(random.uniform(0, 0.02))
    page["title"] = "today"


def read() -> None:
    time.sleep(random.uniform(0, 0.02))
    found.append(page.get("title"))


threads = [threading.Thread(target=write, name="writer"), threading.Thread(target=read, name="reader")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(found)
assert found == ["today"], "the page was read before it was written"
