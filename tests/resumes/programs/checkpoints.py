"""Append numbered entries to a ledger, each written at once, and go on from a checkpoint every few entries."""
import sys

import replaydbg

count = int(sys.argv[1])
number = 0


def load(saved):
    global number
    number = int(saved)


def save():
    return b"%d" % number


with open("ledger", "ab", buffering=0) as ledger:
    while number < count:
        replaydbg.checkpoint(load, save, every_events=110 if count < 1000 else 1000)
        ledger.write(b"%d\n" % number)
        number += 1
print("entered", count)
