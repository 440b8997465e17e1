"""A descriptor is closed while another thread still writes to it; its number is then another file's."""

import os
import sys
import tempfile
import threading

files = {}
failures = []


def rotate(base):
    for number in range(60):
        old, new = files["log"], os.open(os.path.join(base, f"{number}.log"), os.O_CREAT | os.O_WRONLY)
        os.close(old)
        files["log"] = new


def write():
    for _ in range(300):
        descriptor = files["log"]
        os.stat("/")  # is there room on the disk?
        try:
            os.write(descriptor, b"line\n")
        except OSError as error:
            failures.append(error.errno)


with tempfile.TemporaryDirectory() as base:
    files["log"] = os.open(os.path.join(base, "first.log"), os.O_CREAT | os.O_WRONLY)
    threads = [threading.Thread(target=rotate, args=(base,)), threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(files["log"])
print("BUG" if failures else "ok", failures)
sys.exit(bool(failures))
