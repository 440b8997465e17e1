"""A core under AddressSanitizer and UndefinedBehaviorSanitizer, built in a copy of the tree, which others use."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.fuzz.outside import Tool

_FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"
_TREE = Path(__file__).parents[2]


def build(place: Path) -> Tool:
    """Return the tool of a copy of the tree at `place`. Raises CalledProcessError if it cannot be compiled."""
    copy, built = place / "tree", place / "sanitized"
    for each in (copy, built):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir(parents=True)
    shutil.copytree(_TREE / "replaydbg", copy / "replaydbg", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(_TREE / name, copy / name)
    compiler = os.environ.get("CC", "gcc")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("REPLAYDBG", "PYTHON"))}
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(built), str(copy)],
        env={**env, "CFLAGS": _FLAGS, "LDFLAGS": "-fsanitize=address,undefined"},
        check=True,
        capture_output=True,
        timeout=600,
    )
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()
    env |= {
        "LD_PRELOAD": library,
        "PYTHONPATH": str(built),
        "XDG_DATA_HOME": str(place / "store"),
        # As in tox.ini, and for the same reasons.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:handle_segv=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }
    return Tool(sys.executable, env, is_sanitized=True)
