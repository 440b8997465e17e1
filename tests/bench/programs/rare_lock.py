"""Four threads that compute and take a lock at every ten thousandth number."""

import threading

NUMBERS = 3_000_000
LOCK = threading.Lock()
TOTALS: dict[int, int] = {}


def _compute(which: int) -> None:
    total = which
    for number in range(NUMBERS):
        total = (total * 7 + number) % 1_000_003
        if number % 10_000 == 0:
            with LOCK:
                TOTALS[which] = TOTALS.get(which, 0) + total


def main() -> None:
    """Starts them and waits."""
    threads = [threading.Thread(target=_compute, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sorted(TOTALS.items()))


main()
