"""Build the wheel with the core and the one without, and try both as a user without a compiler would.

The first is repaired for manylinux, installed into a new environment, and runs `replaydbg demo`. The second is
installed beside it, and reads a recording that the first one has made; with `--other PYTHON`, in one of that Python.
The environment of the first one then records programs of other environments.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.wheels.commands import Failed, run
from tests.wheels.tool_environment import try_tool_environment

ROOT = Path(__file__).parents[2]
_PROGRAM = """
import replaydbg
kept = {}
for number in range(30):
    kept[number] = [number] * 3
    if number in (3, 20):
        replaydbg.snapshot(f"with {number}")
print(len(kept))
"""
_READS = ("info", "events", "snapshots", "verify", "diff @#1 @#2", "heap @#2", "resources")


def main(argv: Sequence[str] | None = None) -> int:
    """0: both wheels do what they should; 1: one does not."""
    parser = argparse.ArgumentParser(prog="tests.wheels", description=__doc__)
    parser.add_argument("--other", metavar="PYTHON", default=sys.executable, help="for the wheel without the core")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="wheels-") as directory:
        try:
            _try(Path(directory), options.other)
        except (Failed, subprocess.TimeoutExpired) as error:
            print(error)
            return 1
    print("both wheels do what they should")
    return 0


def _try(work: Path, other: str) -> None:
    core, pure = _built(work / "core", {}), _built(work / "pure", {"REPLAYDBG_PURE": "1"})
    if not pure.name.endswith("-py3-none-any.whl"):
        raise Failed(f"the wheel without the core is called {pure.name}")
    core = _repaired(core, work / "repaired")
    print(core.name, pure.name, sep="\n", flush=True)
    empty = work / "no-tools"
    empty.mkdir()
    env = {
        **os.environ,
        "PATH": str(empty),
        **{name: str(work / "home" / name) for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")},
    }
    with_core = _environment(work / "with-core", sys.executable, core, env)
    run([with_core, "-m", "replaydbg", "demo"], env, work)
    print("the demo has recorded and replayed a failure", flush=True)
    (work / "prog.py").write_text(_PROGRAM)
    run([with_core, "-m", "replaydbg", "record", "-q", "-o", "run.rdbg", "prog.py"], env, work)
    without = _environment(work / "without", other, pure, env)
    for words in map(str.split, _READS):
        command = [words[0], "run.rdbg", *words[1:]]
        here, there = (run([python, "-m", "replaydbg", *command], env, work, (0, 1)) for python in (with_core, without))
        if there != here:
            raise Failed(f"{' '.join(command)} prints something else without the core:\n{there}\nand with it:\n{here}")
    refused = run([without, "-m", "replaydbg", "record", "prog.py"], env, work, (1,))
    if refused.count("\n") != 1 or not refused.startswith("replaydbg: "):
        raise Failed(f"record says {refused}")
    print(f"{len(_READS)} commands read the recording without the core; record says: {refused}", end="", flush=True)
    try_tool_environment(work, work / "with-core" / "bin" / "replaydbg", env)


def _built(directory: Path, settings: Mapping[str, str]) -> Path:
    """Build a wheel out of a copy of what is tracked, so that nothing of an earlier build is in it."""
    source = directory / "source"
    source.mkdir(parents=True)
    tracked = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "xf", "-"], cwd=source, input=tracked, check=True)
    run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", ".", "."], {**os.environ, **settings}, source)
    (wheel,) = source.glob("*.whl")
    return wheel


def _repaired(wheel: Path, directory: Path) -> Path:
    run([sys.executable, "-m", "auditwheel", "repair", "-w", str(directory), str(wheel)], os.environ, ROOT)
    (repaired,) = directory.glob("*manylinux*.whl")
    return repaired


def _environment(directory: Path, python: str, wheel: Path, env: Mapping[str, str]) -> str:
    """Return the Python of a new environment that has the wheel, with what it depends on: wheels, too."""
    run([python, "-m", "venv", str(directory)], env, ROOT)
    own = str(directory / "bin" / "python")
    run([own, "-m", "pip", "install", "-q", "--only-binary", ":all:", str(wheel)], env, ROOT)
    return own


if __name__ == "__main__":
    sys.exit(main())
