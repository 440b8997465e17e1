"""A directory is created after a look whether it exists: another thread may have created it meanwhile.

After https://github.com/mkdocs/mkdocs/pull/2303 and https://github.com/boto/botocore/pull/2721.
"""

import os
import sys
import tempfile
import threading

failures = []


def fetch(base, number):
    for page in range(40):
        folder = os.path.join(base, f"host{page}", "pages")
        if not os.path.exists(folder):
            try:
                os.makedirs(folder)
            except FileExistsError as error:
                failures.append((number, str(page), error.errno))


with tempfile.TemporaryDirectory() as base:
    threads = [threading.Thread(target=fetch, args=(base, number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("BUG" if failures else "ok", failures)
sys.exit(bool(failures))
