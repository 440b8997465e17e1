"""Append numbered entries to a ledger, each written at once, and go on from a checkpoint every few entries."""
import sys
import time

import replaydbg

count = int(sys.argv[1])
number = 0
is_followed = count >= 1000  # By a standby, which takes longer to begin than 1,000 entries if nothing waits.


def load(saved):
    global number
    number = int(saved)


def save():
    return b"%d" % number


with open("ledger", "ab", buffering=0) as ledger:
    while number < count:
        replaydbg.checkpoint(load, save, every_events=2000 if is_followed else 110)
        ledger.write(b"%d\n" % number)
        number += 1
        if is_followed:
            time.sleep(0.0005)
print("entered", count)
