"""Four threads that compute and wait for nobody: calls, loops, objects."""

import threading

RESULTS: dict[int, int] = {}


class _Point:
    def __init__(self, number: int) -> None:
        self.number = number

    def moved(self, by: int) -> "_Point":
        """Another one."""
        return _Point((self.number * 31 + by) % 1_000_003)


def _fibonacci(number: int) -> int:
    return number if number < 2 else _fibonacci(number - 1) + _fibonacci(number - 2)


def _loop(count: int) -> int:
    total = 0
    for number in range(count):
        total = (total * 7 + number) % 1_000_003
    return total


def _compute(which: int) -> None:
    point = _Point(which)
    for number in range(300_000):
        point = point.moved(number)
    RESULTS[which] = _fibonacci(23) + _loop(1_500_000) + point.number


def main() -> None:
    """Starts them and waits."""
    threads = [threading.Thread(target=_compute, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sorted(RESULTS.items()))


main()
