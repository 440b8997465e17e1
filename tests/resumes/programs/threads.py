"""Three threads hand entries to a fourth one, by a queue, which appends them to a ledger."""
import queue
import sys
import threading

count = int(sys.argv[1])
entries = queue.Queue(maxsize=4)
lock = threading.Lock()
numbers = iter(range(count))


def produce():
    while True:
        with lock:
            number = next(numbers, None)
        if number is None:
            return
        entries.put(number)


def consume():
    with open("ledger", "ab", buffering=0) as ledger:
        while (number := entries.get()) is not None:
            ledger.write(b"%d\n" % number)


consumer = threading.Thread(target=consume)
consumer.start()
producers = [threading.Thread(target=produce) for _ in range(3)]
for each in producers:
    each.start()
for each in producers:
    each.join()
entries.put(None)
consumer.join()
print("entered", count)
