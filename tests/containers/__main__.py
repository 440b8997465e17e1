"""`python -m tests.containers PROFILE...`: does replaydbg work with what containers leave it?

Each PROFILE is a file of the form of Docker's profiles for seccomp, such as its default one (moby/profiles:
seccomp/default.json) or Podman's (containers/common: pkg/seccomp/seccomp.json).
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.harness.process import run
from tests.harness.surroundings import restore_signals, without_steering
from tests.harness.table import as_text

_PROGRAM = """\
import os, random, subprocess, sys, threading, time

total = 0

def work():
    global total
    for _ in range(50):
        total += 1
        time.sleep(0)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if os.fork() == 0:
    print("child", random.random(), flush=True)
    os._exit(3)
os.wait()
subprocess.run([sys.executable, "-c", "import random; print(random.random())"], check=True)
print(total, random.random(), flush=True)
raise SystemExit(9)
"""

# A command line of replaydbg, and the exit code that it has.
_TRIALS = {
    "doctor": (["doctor"], 0),
    "record a program with threads and children": (["record", "-q", "-o", "run", "prog.py"], 9),
    "replay all of its processes": (["replay", "-q", "run"], 9),
    "record one process": (["record", "-q", "--children=none", "-o", "one", "prog.py"], 9),
    "replay it": (["replay", "-q", "one.rdbg"], 9),
    "why": (["why", "one.rdbg", "total"], 0),
    "diff of two moments": (["diff", "--no-writes", "one.rdbg", "@start", "@end"], 1),
    "resources": (["resources", "one.rdbg"], 0),
    "hunt": (["hunt", "-q", "-n", "4", "--until", "fail", "-o", "hunted", "prog.py"], 0),
    "verify": (["verify", "run"], 0),
}


def main(argv: Sequence[str] | None = None) -> int:
    """0: everything works with every profile; 1: not so."""
    parser = argparse.ArgumentParser(prog="python -m tests.containers", description=__doc__)
    parser.add_argument("profiles", nargs="+", type=Path, metavar="PROFILE")
    options = parser.parse_args(argv)
    restore_signals()
    rows, is_right = [], True
    for profile in options.profiles:
        with tempfile.TemporaryDirectory(prefix="replaydbg-containers-") as name:
            for what, words in _tried(profile.absolute(), Path(name)):
                rows.append([profile.name, what, words])
                is_right = is_right and words == "works"
    print(as_text(["profile", "what", "result"], rows))
    return int(not is_right)


def _tried(profile: Path, folder: Path) -> list[tuple[str, str]]:
    (folder / "prog.py").write_text(_PROGRAM)
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"), "XDG_CACHE_HOME": str(folder / "cache")}
    environment = without_steering(os.environ) | home
    inside = [sys.executable, str(Path(__file__).with_name("inside.py")), str(profile)]
    found = []
    for what, (words, status) in _TRIALS.items():
        command = [*inside, sys.executable, "-m", "replaydbg", *words]
        done = run(command, cwd=folder, env=environment, timeout=100)
        last = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()[-1:]
        found.append((what, "works" if done.status == status else f"{done.ending}: {' '.join(last)}"))
    return found


if __name__ == "__main__":
    sys.exit(main())
