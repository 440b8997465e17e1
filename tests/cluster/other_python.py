"""`python -m tests.cluster.other_python DIR`: an environment with another Python, which has dask, for its workers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_PACKAGES = ("distributed==2026.8.0", "dill", "platformdirs", "pyrage", "rich", "sortedcontainers", "zstandard")
_MINORS = (11, 12, 13)


def main(words: list[str]) -> int:
    """Make it, unless it is there; 0 also if there is no other Python: the tests then skip with the reason."""
    directory = Path(words[0])
    found = next(_others(), None)
    if found is None:
        print("there is no other Python here")
    elif not (directory / "bin" / "python").exists():
        subprocess.run([found, "-m", "venv", str(directory)], check=True)
        subprocess.run([str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet", *_PACKAGES], check=True)
    return 0


def _others() -> Iterator[str]:
    root = Path(os.environ.get("PYENV_ROOT") or Path("~/.pyenv").expanduser()) / "versions"
    for minor in _MINORS:
        if minor != sys.version_info.minor:
            yield from map(str, sorted(root.glob(f"3.{minor}.*/bin/python")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
