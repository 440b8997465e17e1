"""A queue is asked whether it has something, and then for it, by two threads: the last item is for one of them."""

import os
import queue
import sys
import threading

work = queue.SimpleQueue()
for number in range(60):
    work.put(number)
failures = []


def take():
    while not work.empty():
        os.stat("/")  # is there room for the result?
        try:
            work.get_nowait()
        except queue.Empty:
            failures.append(threading.current_thread().name)


threads = [threading.Thread(target=take) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("BUG" if failures else "ok", failures)
sys.exit(bool(failures))
