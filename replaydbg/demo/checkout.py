"""Settles one order and keeps the books: a small program that fails about one time in five.

Its arguments are the order to settle (a CSV file) and the books to keep (a SQLite database).
"""

import csv
import random
import sqlite3
import sys
import time
from contextlib import closing
from datetime import datetime

SHIPPING = 1000  # cents for the whole order, whatever number of parcels it takes


def read_order(path: str) -> dict[str, int]:
    """The items of the order and their prices in cents."""
    with open(path, newline="", encoding="utf-8") as file:
        return {row["item"]: int(row["cents"]) for row in csv.DictReader(file)}


def pack(items: list[str]) -> list[list[str]]:
    """Put the items into the parcels that happen to be free in the warehouse."""
    free = random.randint(1, 5)
    parcels: list[list[str]] = [[] for _ in range(free)]
    for item in items:
        random.choice(parcels).append(item)
    return parcels


def settle(books: sqlite3.Connection, receipt: int, parcels: list[list[str]]) -> None:
    """Write down each parcel's share of the shipping cost."""
    share = round(SHIPPING / len(parcels))
    for number, items in enumerate(parcels, start=1):
        books.execute("INSERT INTO shares VALUES (?, ?, ?, ?)", (receipt, number, ", ".join(items), share))
    books.commit()


def check(books: sqlite3.Connection, receipt: int) -> None:
    """Refuse books that do not add up."""
    (booked,) = books.execute("SELECT sum(cents) FROM shares WHERE receipt = ?", (receipt,)).fetchone()
    if booked != SHIPPING:
        raise ValueError(f"receipt {receipt}: the shares add up to {booked} cents, shipping costs {SHIPPING}")


def main(orders: str, database: str) -> None:
    """Settle the order in `orders` and check the books in `database`."""
    begin = time.perf_counter()
    order = read_order(orders)
    receipt = time.time_ns() // 1_000_000
    print(f"{datetime.now():%Y-%m-%d %H:%M:%S}  receipt {receipt}: {len(order)} items, {sum(order.values())} cents")
    with closing(sqlite3.connect(database)) as books:
        books.execute("CREATE TABLE IF NOT EXISTS shares (receipt, parcel, items, cents)")
        settle(books, receipt, pack(list(order)))
        check(books, receipt)
    print(f"settled in {(time.perf_counter() - begin) * 1000:.1f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
