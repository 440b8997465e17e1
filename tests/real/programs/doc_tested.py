# mypy: ignore-errors
# ruff: noqa
"""doctest: examples, one of which fails with a random number.

>>> stock()
{'bolt': 12, 'nut': 7, 'screw': 99}
>>> random.random()
0.5
>>> time.time() > 0
True
"""

import doctest
import random
import time


def stock():
    """Reads the stock.

    >>> sorted(stock())
    ['bolt', 'nut', 'screw']
    """
    with open("stock.csv") as file:
        return {name: int(count) for name, count in (line.split(",") for line in file)}


if __name__ == "__main__":
    raise SystemExit(doctest.testmod().failed)
