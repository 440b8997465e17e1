"""Walks a tree of 20,000 files; opens, reads and sizes up each."""

import os
import sys


def main(root: str) -> None:
    """Adds up names, sizes and contents."""
    files = names = size = total = 0
    for folder, folders, found in os.walk(root):
        # The order of a directory's entries is the file system's.
        folders.sort()
        for name in sorted(found):
            path = os.path.join(folder, name)  # noqa: PTH118 - as most programs do it
            size += os.stat(path).st_size  # noqa: PTH116
            with open(path, encoding="utf-8") as file:  # noqa: PTH123
                total += int(file.read())
            files += 1
            names += len(name)
    print(files, names, size, total)


main(sys.argv[1])
