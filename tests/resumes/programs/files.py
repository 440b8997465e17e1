"""Append numbered entries to a ledger, each written at once, and count them in a file that is replaced each time."""
import os
import sys

count = int(sys.argv[1])
with open("ledger", "ab", buffering=0) as ledger:
    for number in range(count):
        ledger.write(b"%d\n" % number)
        if number % 10 == 9:
            with open("count.new", "w") as file:
                file.write(f"{number + 1}")
            os.replace("count.new", "count")
print("entered", count)
