"""Kernelspecs of recorded kernels: a directory with a `kernel.json` where Jupyter looks for kernels.

The format is that of https://jupyter-client.readthedocs.io/en/stable/kernels.html. The environment of replaydbg need
not have Jupyter, so these files are written and found without it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from platformdirs import user_data_path

from replaydbg.errors import UsageError

NAME = "replaydbg"
"""The default name of a kernelspec."""
_NAME = re.compile(r"[A-Za-z0-9._-]+\Z")
_FILE = "kernel.json"
_MINE = "replaydbg"
"""The key in a kernelspec's metadata by which ours are known."""
_LARGEST = 1 << 20


class RecordedKernel(NamedTuple):
    """An installed kernelspec of a recorded kernel."""

    name: str
    """Its name, such as `replaydbg`."""
    directory: Path
    """Where it is."""
    display_name: str
    """The name in the lists of Jupyter."""
    python: str
    """The interpreter of the kernel."""
    tool: str
    """The interpreter that runs replaydbg."""

    @property
    def problem(self) -> str:
        """Why it cannot be started; empty: both interpreters are there."""
        missing = [each for each in (self.tool, self.python) if not os.access(each, os.X_OK)]
        return f"{missing[0]} is missing" if missing else ""


def kernelspec(python: str, display_name: str, options: tuple[str, ...] = ()) -> dict[str, object]:
    """Return the content of a `kernel.json`: a kernel of the interpreter `python`, recorded with `options`."""
    launcher = str(Path(__file__).with_name("kernel_start.py"))
    record = [sys.executable, "-P", "-m", "replaydbg", "record", "--quiet", "--seal-in-background", *options, "--"]
    return {
        "argv": [*record, python, launcher, sys.executable, "-f", "{connection_file}"],
        "display_name": display_name,
        "language": "python",
        "interrupt_mode": "signal",
        # The debugger of an editor traces the program, which the recorder does, too.
        "metadata": {"debugger": False, _MINE: {"python": python, "tool": sys.executable}},
    }


def user_directory() -> Path:
    """Return the directory of the user's kernelspecs."""
    given = os.environ.get("JUPYTER_DATA_DIR")
    return (Path(given) if given else user_data_path("jupyter")) / "kernels"


def prefix_directory(prefix: Path | str) -> Path:
    """Return the directory of the kernelspecs of an environment."""
    return Path(prefix) / "share" / "jupyter" / "kernels"


def install(directory: Path, name: str, content: dict[str, object]) -> Path:
    """Write a kernelspec, in the place of an earlier one of ours; return its directory.

    Raises UsageError for a name that Jupyter does not accept, or if another kernel has it; OSError.
    """
    if not _NAME.match(name):
        raise UsageError(f"--name must consist of letters, digits, '.', '-' and '_' (got {name!r}).")
    target = directory / name
    if (target / _FILE).exists() and _read(target) is None:
        raise UsageError(f"{str(target)!r} is a kernel of another program: choose another name with --name.")
    target.mkdir(parents=True, exist_ok=True)
    (target / _FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return target


def remove(directory: Path, name: str) -> Path:
    """Remove a kernelspec of ours; return its directory. Raises UsageError if there is none, or it is another's."""
    target = directory / name
    if not _NAME.match(name) or not (target / _FILE).exists():
        raise UsageError(f"There is no kernel {name!r} in {str(directory)!r}.")
    if _read(target) is None:
        raise UsageError(f"{str(target)!r} is a kernel of another program: only recorded kernels are removed.")
    shutil.rmtree(target)
    return target


def installed(directories: tuple[Path, ...]) -> list[RecordedKernel]:
    """Return the kernelspecs of ours in these directories, by their names; the first of a name is the one in use."""
    found: dict[str, RecordedKernel] = {}
    for directory in directories:
        for each in sorted(directory.glob(f"*/{_FILE}")):
            kernel = _read(each.parent)
            if kernel is not None:
                found.setdefault(kernel.name, kernel)
    return sorted(found.values())


def searched() -> tuple[Path, ...]:
    """Return the directories where Jupyter looks for kernelspecs, as far as they can be known without it."""
    given = [Path(each) / "kernels" for each in os.environ.get("JUPYTER_PATH", "").split(os.pathsep) if each]
    of_system = [Path("/usr/local/share/jupyter/kernels"), Path("/usr/share/jupyter/kernels")]
    return (*given, user_directory(), prefix_directory(sys.prefix), *of_system)


def _read(directory: Path) -> RecordedKernel | None:
    """Return a kernelspec; None: it is not one of ours, or cannot be read."""
    try:
        with (directory / _FILE).open("rb") as file:
            content = json.loads(file.read(_LARGEST))
        mine = content["metadata"][_MINE]
        texts = (content["display_name"], mine["python"], mine["tool"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return RecordedKernel(directory.name, directory, *texts) if all(type(each) is str for each in texts) else None
