"""For one file the umask is set to 0: files that another thread creates meanwhile are open to all.

After https://github.com/tox-dev/filelock/issues/204.
"""

import os
import stat
import sys
import tempfile
import threading

too_open = []


def lock_files(base):
    for number in range(40):
        umask = os.umask(0)
        descriptor = os.open(os.path.join(base, f"{number}.lock"), os.O_CREAT | os.O_WRONLY, 0o644)
        os.umask(umask)
        os.close(descriptor)


def write_reports(base):
    for number in range(40):
        path = os.path.join(base, f"{number}.txt")
        with open(path, "w") as file:
            file.write("private")
        if stat.S_IMODE(os.stat(path).st_mode) & 0o022:
            too_open.append(number)


os.umask(0o022)
with tempfile.TemporaryDirectory() as base:
    threads = [threading.Thread(target=each, args=(base,)) for each in (lock_files, write_reports)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("BUG" if too_open else "ok", too_open)
sys.exit(bool(too_open))
