"""100,000 numbers through a queue to another thread and back through a second one."""

import queue
import threading
import time

ROUNDS = 100_000


def main() -> None:
    """Sends, waits, adds up."""
    there: queue.Queue[int] = queue.Queue()
    back: queue.Queue[int] = queue.Queue()

    def answer() -> None:
        while (number := there.get()) >= 0:
            back.put(number + 1)

    thread = threading.Thread(target=answer)
    thread.start()
    started = time.perf_counter()
    total = 0
    for number in range(ROUNDS):
        there.put(number)
        total += back.get()
    took = time.perf_counter() - started
    there.put(-1)
    thread.join()
    print(total)
    print(f"{1e6 * took / ROUNDS:.2f} us a message")


main()
