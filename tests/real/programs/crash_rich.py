# mypy: ignore-errors
# ruff: noqa
"""rich: a table, then a traceback with the local variables of each frame."""

import dataclasses
import random
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.traceback import install

install(show_locals=True, width=100)


@dataclasses.dataclass
class Meter:
    offset: float = dataclasses.field(default_factory=random.random)


def read(meter, path):
    started = time.time()
    clock = time.time
    values = [float(line) + meter.offset for line in Path(path).read_text().split()]
    return sum(values) / (len(values) - 3), started, clock


def show():
    table = Table("when", "what")
    table.add_row(str(time.time()), "started")
    Console(width=80).print(table)


show()
read(Meter(), "three.txt")
