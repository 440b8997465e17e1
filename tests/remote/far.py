"""A store of recordings and a remote one beside it, in a directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from replaydbg.remote.remote_index import RemoteIndex, parse_index
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering

TIMEOUT = 60.0
PROGRAM = "import json, time, helper\nprint(json.dumps(helper.NAMES), time.time())\n"
FORKS = "import os\nif not (child := os.fork()):\n    os._exit(3)\nprint(os.waitpid(child, 0)[1] >> 8)\n"


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of commands: the store and the cache are in `folder`."""
    own = {"REPLAYDBG_STORE": str(folder / "store"), "XDG_CACHE_HOME": str(folder / "cache")}
    return without_steering(os.environ) | own


def replaydbg(folder: Path, *words: str, env: Mapping[str, str] | None = None) -> Finished:
    """Run a command with the store and the cache of `folder`."""
    command = [sys.executable, "-m", "replaydbg", *words]
    return run(command, cwd=folder, env=environment(folder) | dict(env or {}), timeout=TIMEOUT)


def make_programs(folder: Path) -> None:
    """Write a program with a module of its own, and one that forks."""
    (folder / "program.py").write_text(PROGRAM)
    (folder / "helper.py").write_text("NAMES = [1]\n" + "".join(f"# {number}\n" for number in range(20_000)))
    (folder / "forks.py").write_text(FORKS)


def url(folder: Path) -> str:
    """Return the address of the remote store of `folder`."""
    return f"file://{folder}/far"


def pieces(folder: Path) -> dict[str, Path]:
    """Return the pieces in the remote store of `folder`, by their names."""
    return {
        path.name: path for path in (folder / "far" / "pieces").rglob("*") if path.is_file() and path.name[0] != "."
    }


def index_of(folder: Path, name: str) -> RemoteIndex:
    """Return the index of a recording in the remote store of `folder`."""
    return parse_index(name, (folder / "far" / "recordings" / f"{name}.json").read_bytes())
