"""Statistics are printed while other threads add new keys to them.

After https://github.com/proxystore/proxystore/issues/206 and https://github.com/boxed/mutmut/issues/410.
"""

import os
import sys
import threading

stats = {}
failures = []
done = threading.Event()


def serve(first):
    for number in range(first, first + 150):
        os.stat("/")
        stats[f"event{number}"] = number
    done.set()


def report():
    while not done.is_set():
        try:
            for name in stats:
                os.stat("/")
                if stats[name] < 0:
                    print(name)
        except RuntimeError as error:
            failures.append(str(error))
            return


threads = [threading.Thread(target=serve, args=(0,)), threading.Thread(target=report)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("BUG" if failures else "ok", failures)
sys.exit(bool(failures))
