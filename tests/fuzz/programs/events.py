"""Asks for a bit of everything."""

import os
import random
import sys
import threading
import time

kept = []
for number in range(12):
    kept.append((number, time.time(), random.random(), os.urandom(2)))
    os.stat(".")
    print(number, len(kept), flush=True)


def work() -> None:
    for _ in range(3):
        time.sleep(0)
        kept.append(time.monotonic())


threads = [threading.Thread(target=work) for _ in range(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
with open(__file__, "rb") as file:
    data = file.read()
print(len(data), file=sys.stderr)
try:
    os.stat("missing")
except OSError as error:
    print(error.errno)
sys.exit(3)
