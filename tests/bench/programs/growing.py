"""The number of events given in argv: readings of a clock or, if argv also has a size, of so many random bytes each."""

import os
import sys
import time


def main(count: int, size: int) -> None:
    """Crosses the boundary `count` times."""
    total = 0
    if size:
        for _ in range(count):
            total += os.urandom(size)[0]
    else:
        for _ in range(count):
            total += time.monotonic_ns() & 1
    print(0 < total < count * 256)


main(int(sys.argv[1]), int(sys.argv[2]))
