"""Enter numbers into a table of SQLite, each in a transaction of its own, and write the table to a ledger at the end."""
import sqlite3
import sys

count = int(sys.argv[1])
database = sqlite3.connect("ledger.db")
database.execute("create table entries (number integer)")
for number in range(count):
    with database:
        database.execute("insert into entries values (?)", (number,))
with open("ledger", "w") as ledger:
    for (number,) in database.execute("select number from entries order by rowid"):
        ledger.write(f"{number}\n")
database.close()
print("entered", count)
