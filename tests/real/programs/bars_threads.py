# mypy: ignore-errors
# ruff: noqa
"""tqdm with its monitor thread, bars in threads, and thread_map."""

import random
import threading
import time

from tqdm import tqdm
from tqdm.contrib.concurrent import thread_map

tqdm.monitor_interval = 0.05
total = []


def work(number):
    for _ in tqdm(range(20), desc=f"thread {number}", position=number, miniters=7, mininterval=0.02):
        time.sleep(random.random() / 200)
        total.append(number)


threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("".join(map(str, total)))
print(thread_map(lambda number: (time.sleep(random.random() / 300), number * number)[1], range(20), max_workers=4))
print("all bars are full")
