"""A thread reports that it is alive every two milliseconds, and is taken for dead after ten: another one computes."""

import sys
import threading
import time

beats = [time.monotonic()]
done = threading.Event()


def beat():
    while not done.is_set():
        time.sleep(0.002)  # what the program is about
        beats.append(time.monotonic())


def compute():
    total, end = 0, time.monotonic() + 0.08
    while time.monotonic() < end:
        total += sum(number & 3 for number in range(100))
    done.set()


threads = [threading.Thread(target=each) for each in (beat, compute)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
longest = max(later - earlier for earlier, later in zip(beats, beats[1:]))
is_late = longest > 0.0105
print("BUG" if is_late else "ok", longest)
sys.exit(is_late)
