# mypy: ignore-errors
# ruff: noqa
"""Finds equal files with os.walk, hashlib and shutil, uses secrets, uuid1, tempfile, glob, getpass, platform."""

import getpass
import glob
import hashlib
import os
import platform
import secrets
import shutil
import tempfile
import uuid

by_digest = {}
for folder, _, names in os.walk("data"):
    for name in sorted(names):
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            by_digest.setdefault(hashlib.file_digest(file, "sha256").hexdigest(), []).append(path)
print({digest[:8]: paths for digest, paths in by_digest.items() if len(paths) > 1})
with tempfile.NamedTemporaryFile("w+", prefix=secrets.token_hex(2)) as file:
    file.write(str(uuid.uuid1()))
    file.flush()
    shutil.copy2(file.name, "copied")
    print(file.name, open("copied").read(), uuid.uuid4(), secrets.token_urlsafe())
print(sorted(glob.glob("**/*", recursive=True)), getpass.getuser(), platform.platform(), os.getloadavg())
print(shutil.disk_usage("/").total, os.cpu_count(), os.stat("copied").st_mtime_ns, os.times().elapsed)
os.unlink("copied")
