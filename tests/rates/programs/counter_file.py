"""A counter in a file is read, and written one higher, by several threads."""

import os
import sys
import tempfile
import threading


def count(path):
    for _ in range(10):
        with open(path) as file:
            number = int(file.read() or 0)
        with open(path + threading.current_thread().name, "w") as file:
            file.write(str(number + 1))
        os.replace(file.name, path)


with tempfile.TemporaryDirectory() as base:
    path = os.path.join(base, "counter")
    with open(path, "w") as file:
        file.write("0")
    threads = [threading.Thread(target=count, args=(path,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open(path) as file:
        total = int(file.read())
print("ok" if total == 20 else "BUG", total)
sys.exit(total != 20)
