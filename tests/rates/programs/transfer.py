"""Money is between two accounts for a moment, in which it is logged: an audit finds the sum wrong."""

import os
import sys
import tempfile
import threading

accounts = {"a": 500, "b": 500}
wrong = []
done = threading.Event()


def transfer(log):
    for _ in range(60):
        accounts["a"] -= 10
        os.write(log, b"10 from a to b\n")
        accounts["b"] += 10
    done.set()


def audit():
    while not done.is_set():
        os.stat("/")
        total = accounts["a"] + accounts["b"]
        if total != 1000:
            wrong.append(total)


with tempfile.TemporaryFile() as log:
    threads = [threading.Thread(target=audit), threading.Thread(target=transfer, args=(log.fileno(),))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("BUG" if wrong else "ok", len(wrong))
sys.exit(bool(wrong))
