"""Append random entries to a ledger, and print them only when the ledger is synchronised, several at a time."""
import os
import sys

count, mode = int(sys.argv[1]), sys.argv[2]
printed = 0
entries = []
with open("ledger", mode, buffering=0) as ledger:
    os.fstat(ledger.fileno())  # so its size is recorded, also if it is written at its end
    for number in range(count):
        entries.append(f"{number} {os.urandom(150).hex()}\n")
        ledger.write(entries[-1].encode())
        os.getppid()
        if os.urandom(1)[0] % 3 == 0 or number == count - 1:
            os.fsync(ledger.fileno())
            for each in entries[printed:]:
                print(each, end="", flush=True)
            printed = len(entries)
print("entered", count)
