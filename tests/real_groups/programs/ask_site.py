"""Ask the site at a port 200 times, by four threads: unrecorded."""

import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

URL = f"http://127.0.0.1:{sys.argv[1]}/?"


def ask(number):
    """Return the worker that answers."""
    with urllib.request.urlopen(f"{URL}{number}", timeout=30) as answer:
        return answer.read().split()[0]


for _ in range(300):
    try:
        ask(0)
        break
    except OSError:
        time.sleep(0.1)
with ThreadPoolExecutor(4) as pool:
    workers = list(pool.map(ask, range(200)))
print(len(workers), "answers by", len(set(workers)), "workers")
