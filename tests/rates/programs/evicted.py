"""A least-recently-used cache: the entry that was found is moved to the end, after another thread has evicted it.

After https://github.com/flop-labs/technocore-chat/issues/376.
"""

import os
import sys
import threading
from collections import OrderedDict

memo = OrderedDict()
failures = []


def window(name):
    found = memo.get(name)
    stamp = os.stat("/").st_ino  # is the entry still valid?
    if found == stamp:
        memo.move_to_end(name)
        return
    memo[name] = stamp
    memo.move_to_end(name)
    while len(memo) > 3:
        memo.popitem(last=False)


def serve(first):
    for number in range(200):
        try:
            window((first + number) % 5)
        except KeyError as error:
            failures.append(str(error))


threads = [threading.Thread(target=serve, args=(first,)) for first in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("BUG" if failures else "ok", failures[:3])
sys.exit(bool(failures))
