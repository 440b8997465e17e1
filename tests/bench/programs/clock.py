"""One million readings of the clock."""

import time


def main() -> None:
    """Reads the clock and keeps the greatest step."""
    last = time.time()
    greatest = 0.0
    for _ in range(1_000_000):
        now = time.time()
        if now - last > greatest:
            greatest = now - last
        last = now
    print(f"greatest step {greatest:.9f} s, ended at {last:.6f}")


main()
