"""A cache looks whether a file exists and then opens it; who finds it expired deletes it.

After https://github.com/django/django/pull/16379.
"""

import os
import sys
import tempfile
import threading

failures = []


def has_key(path):
    if os.path.exists(path):
        with open(path, "rb") as file:
            is_expired = file.read(1) == b"0"
        if is_expired:
            try:
                os.remove(path)
            except FileNotFoundError:
                pass
        return not is_expired
    return False


def serve(paths):
    for path in paths:
        try:
            has_key(path)
        except FileNotFoundError:
            failures.append(os.path.basename(path))


with tempfile.TemporaryDirectory() as base:
    paths = [os.path.join(base, f"{number}.djcache") for number in range(30)]
    for path in paths:
        with open(path, "wb") as file:
            file.write(b"0")
    threads = [threading.Thread(target=serve, args=(paths,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("BUG" if failures else "ok", failures)
sys.exit(bool(failures))
