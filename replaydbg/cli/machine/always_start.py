"""The file by which the interpreter of a virtual environment starts each of its runs as a recorded one.

The text below becomes `replaydbg-always.pth` in the site-packages of the environment: one line, which the module `site`
executes before the program. It stands for itself, so that an environment whose replaydbg is gone still runs its
programs. A recorded program and its replays meet it, too: there it does nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.config import ALWAYS_OF_OURS, ALWAYS_VARIABLE

FILE = "replaydbg-always.pth"
"""Its name: it comes before `replaydbg.pth`, by which pytest starts."""
LAUNCH = f"""import os, sys
orders, executable, *words = sys.argv[1:]
try:
    from replaydbg.cli.machine.always_run import run
except ImportError as error:
    os.environ[{ALWAYS_VARIABLE!r}] = "plain %d" % os.getpid()
    sys.stderr.write("replaydbg: this run is not recorded: replaydbg cannot be imported (%s).\\n" % error)
    sys.stderr.flush()
    os.execv(executable, words)
run(orders, executable, words)
"""
"""The command of the launcher, in the environment of replaydbg."""
_START = """
def start():
    import os, site, sys, _signal
    answer = []
    sys.audit("replaydbg.recorded", answer)
    name = {variable!r}
    asked = os.environ.get(name, "")
    if asked == "plain %d" % os.getpid():
        del os.environ[name]
        site.is_unrecorded = True  # `site` executes the files of a virtual environment twice
    if hasattr(site, "is_unrecorded"):
        return
    words = sys.orig_argv
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    if answer or asked in ("off", {ours!r}) or not sys.executable or not words:
        return
    if frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        return  # the program runs already, and reads this file once more
    try:
        _signal.set_wakeup_fd(-1)
        own = os.readlink("/proc/self/exe")
        with open("/proc/self/environ", "rb") as file:
            environment = dict(each.split(b"=", 1) for each in file.read().split(b"\\0") if b"=" in each)
    except (ValueError, OSError):
        return  # another interpreter of the process; or there is no /proc
    if own != os.path.realpath(sys.executable) or sys.argv[:1] in ([], [""], ["-"]) or sys.flags.interactive:
        return  # another program with an interpreter in it; or nothing but what is typed
    if {launch!r} in words or any(each.startswith("--replaydbg=") for each in words):
        return
    word, module = os.path.basename(sys.argv[0]), ""
    if word == "-m":
        for place, each in enumerate(words):
            if each[:1] == "-" and each[:2] != "--" and each.endswith("m"):
                module = words[place + 1 : place + 2]
            elif each[:2] == "-m":
                module = [each[2:]]
            else:
                continue
            break
        word = (module or [""])[0].partition(".")[0]
    if word.rstrip("0123456789.") in {never!r} or word in {never!r}:
        # It starts the interpreter for its own work: to build and to install, or to check and to replay.
        os.environ[name] = {ours!r} if word.startswith("replaydbg") else "off"
        return
    try:
        os.execve({tool!r}, [{tool!r}, "-P", "-c", {launch!r}, {orders!r}, sys.executable, *words], environment)
    except OSError as error:
        site.is_unrecorded = True
        sys.stderr.write("replaydbg: this run is not recorded: %s: %s.\\n" % ({tool!r}, error.strerror))
start()
del start
"""
NEVER = ("replaydbg", "pip", "pipx", "uv", "ensurepip", "venv", "virtualenv", "__pip-runner__.py", "_in_process.py")
"""Programs and modules that are not recorded: our own, and those that change the environment."""


class Ring(NamedTuple):
    """How many recordings of runs that passed are kept."""

    store: str
    """The directory of the store."""
    runs: int = 0
    """The number of recordings; 0: `megabytes` counts."""
    megabytes: int = 0
    """The most megabytes that they take together."""
    only_failing: bool = False
    """Whether recordings are kept only if something failed, as by `record --keep-failing-requests`."""


def start_line(ring: Ring) -> str:
    """Return the content of the file: one line, and what a person who finds it should know."""
    orders = json.dumps(ring._asdict())
    text = _START.format(
        variable=ALWAYS_VARIABLE, ours=ALWAYS_OF_OURS, launch=LAUNCH, never=NEVER, tool=sys.executable, orders=orders
    )
    lines = [
        "# Each run of this environment's Python is recorded: see `replaydbg always status`.",
        "# To end that: `replaydbg always off`, or remove this file.",
        f"# {orders}",
    ]
    return "\n".join([*lines, f"import sys; exec({text!r}, {{}})"]) + "\n"


def read_ring(file: Path) -> Ring | None:
    """Return what the file of an environment orders; None: there is none, or it is not ours. Raises OSError."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        return Ring(**json.loads(lines[2].removeprefix("# ")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, IndexError):
        return None
