"""A file system that is soon full."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Mount a file system of `size` ("1m") on a new directory for the block. Skips where that is not allowed."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, timeout=10, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], timeout=10, check=True)
