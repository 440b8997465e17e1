"""Checks the layout of the C core with clang-format (`python -m tests.native.format`; `--write` puts it right).

The style is `.clang-format` at the root; the lint extra has the version that it was written for.
"""

from __future__ import annotations

import subprocess
import sys

from tests.native.layers import NATIVE


def main(arguments: list[str]) -> int:
    """Run clang-format over every C file and header; its exit code."""
    files = [str(path) for path in sorted([*NATIVE.glob("*/*.c"), *NATIVE.glob("*/*.h")])]
    how = ["-i"] if arguments == ["--write"] else ["--dry-run", "--Werror"]
    return subprocess.run(["clang-format", *how, *files], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
