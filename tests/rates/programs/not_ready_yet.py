"""A server is given a moment to get ready instead of being waited for."""

import os
import sys
import threading
import time

ready = []


def serve():
    for _ in range(40):
        os.listdir("/")
    time.sleep(0.004)  # what the program is about: another thread relies on how long this takes
    ready.append(True)


thread = threading.Thread(target=serve)
thread.start()
time.sleep(0.0055)
is_late = not ready
thread.join()
print("BUG" if is_late else "ok")
sys.exit(is_late)
