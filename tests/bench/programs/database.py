"""100,000 sqlite3 statements on a file database: 100 transactions of 1,000 (600 inserts, 200 updates, 200 selects)."""

import sqlite3
import sys


def transaction(connection: sqlite3.Connection, number: int) -> int:
    """One transaction of 1,000 statements; the sum of what it read."""
    first = number * 600
    found = 0
    with connection:
        for key in range(first, first + 600):
            connection.execute("INSERT INTO account VALUES (?, ?, ?)", (key, f"name {key}", key % 97))
        for key in range(first, first + 200):
            connection.execute("UPDATE account SET balance = balance + ? WHERE id = ?", (number, key))
        for key in range(first, first + 200):
            row = connection.execute("SELECT name, balance FROM account WHERE id = ?", (key,)).fetchone()
            found += row[1]
    return found


def main(path: str) -> None:
    """Runs all transactions."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, name TEXT, balance INTEGER)")
    found = sum(transaction(connection, number) for number in range(100))
    print(found, connection.execute("SELECT count(*), sum(balance) FROM account").fetchone())
    connection.close()


main(sys.argv[1])
