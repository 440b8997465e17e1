# mypy: ignore-errors
# ruff: noqa
"""tarfile, zipfile, gzip, bz2 and lzma: packs the inputs and random bytes, lists, extracts, compares."""

import bz2
import gzip
import lzma
import os
import random
import shutil
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

inputs = sorted(Path("data").iterdir())
with tarfile.open("all.tar.gz", "w:gz") as tar:
    for path in inputs:
        tar.add(path)
with tarfile.open("all.tar.gz") as tar:
    tar.list()
    with tempfile.TemporaryDirectory() as directory:
        tar.extractall(directory, filter="data")
        print(sorted(str(path.relative_to(directory)) for path in Path(directory).rglob("*")))
with zipfile.ZipFile("all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for path in inputs:
        archive.write(path)
    archive.writestr("now.txt", f"{time.time()} {random.random()}")
with zipfile.ZipFile("all.zip") as archive:
    print(archive.testzip(), [(info.filename, info.file_size, info.CRC) for info in archive.infolist()])
noise = os.urandom(5000)
for module in (gzip, bz2, lzma):
    with module.open("noise.packed", "wb") as file:
        file.write(noise)
    with module.open("noise.packed", "rb") as file:
        print(module.__name__, file.read() == noise, Path("noise.packed").stat().st_size)
shutil.make_archive("again", "zip", "data")
shutil.rmtree("data")
print(sorted(path.name for path in Path().iterdir()))
