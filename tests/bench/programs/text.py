"""Reads a text file line by line and parses each line."""

import sys


def main(path: str) -> None:
    """Sums the amounts by city."""
    totals: dict[str, float] = {}
    lines = 0
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as most programs do it
        for line in file:
            _, city, amount, _ = line.rstrip("\n").split(",", 3)
            totals[city] = totals.get(city, 0.0) + float(amount)
            lines += 1
    print(lines, len(totals), f"{sum(totals.values()):.2f}")


main(sys.argv[1])
