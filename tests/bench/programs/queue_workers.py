"""200,000 numbers through one queue to four threads."""

import queue
import threading
import time

MESSAGES = 200_000
THREADS = 4
RESULTS: dict[int, int] = {}


def _work(which: int, waiting: "queue.Queue[int]") -> None:
    total = 0
    while (number := waiting.get()) >= 0:
        total += number * 3 % 7
    RESULTS[which] = total


def main() -> None:
    """Sends, waits, adds up."""
    waiting: queue.Queue[int] = queue.Queue()
    threads = [threading.Thread(target=_work, args=(which, waiting)) for which in range(THREADS)]
    for thread in threads:
        thread.start()
    started = time.perf_counter()
    for number in range(MESSAGES):
        waiting.put(number)
    for _ in threads:
        waiting.put(-1)
    for thread in threads:
        thread.join()
    took = time.perf_counter() - started
    print(sum(RESULTS.values()))
    print(f"{1e6 * took / MESSAGES:.2f} us a message")


main()
