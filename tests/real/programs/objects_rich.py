# mypy: ignore-errors
# ruff: noqa
"""rich: a traceback with local variables that are shown with their addresses."""

import random
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.traceback import install

install(show_locals=True, width=100)


class Meter:
    def __init__(self):
        self.offset = random.random()


def read(meter, path):
    started = time.time()
    clock = time.time
    values = [float(line) + meter.offset for line in Path(path).read_text().split()]
    return sum(values) / (len(values) - 3), started, clock


table = Table("when", "what")
table.add_row(str(time.time()), "started")
Console(width=80).print(table)
read(Meter(), "three.txt")
