"""`replaydbg jupyter`: install, remove and list kernels of Jupyter that are recorded."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from replaydbg.cli.common.output import add_json, print_json, print_table
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.jupyter import kernelspecs
from replaydbg.launch.program_python import split_command

_ASKED_WITHIN = 60
"""Seconds for an interpreter to import ipykernel."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parts = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    install = _added(parts, "install", "add a recorded kernel to Jupyter")
    _add_place(install, "the kernel's interpreter")
    install.add_argument("--display-name", metavar="TEXT", help="what Jupyter shows (default: Python 3.N (recorded))")
    install.add_argument(
        "--python",
        metavar="PATH",
        help="the kernel's interpreter, which has ipykernel (default: the one that runs replaydbg)",
    )
    install.add_argument("--secrets", choices=("mask", "keep"), help="as for `replaydbg record`")
    install.add_argument("--children", choices=("none", "fork", "python"), help="as for `replaydbg record`")
    remove = _added(parts, "remove", "remove a recorded kernel from Jupyter; recordings stay")
    _add_place(remove, "replaydbg")
    status = _added(parts, "status", "list the recorded kernels, and whether their interpreters exist")
    add_json(status)


def _added(
    parts: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str
) -> argparse.ArgumentParser:
    return parts.add_parser(name, help=summary, description=f"replaydbg jupyter {name}: {summary}.")


def _add_place(parser: argparse.ArgumentParser, owner: str) -> None:
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="among the kernels of this user (default)")
    place.add_argument("--sys-prefix", action="store_true", help=f"among the kernels of the environment of {owner}")
    place.add_argument("--prefix", metavar="DIR", help="among the kernels of the environment DIR")
    parser.add_argument(
        "--name", default=kernelspecs.NAME, help=f"the name of the kernelspec (default: {kernelspecs.NAME})"
    )


def run(args: argparse.Namespace) -> int:
    """Do it; `status` exits with 1 if a kernel cannot be started."""
    if args.action == "status":
        return _status(is_json=args.json)
    if args.action == "remove":
        print(f"removed {kernelspecs.remove(_directory(args, sys.prefix), args.name)}")
        return 0
    python = _interpreter(args.python)
    version, prefix = _asked(python)
    options = [f"--{name}={value}" for name in ("secrets", "children") if (value := getattr(args, name))]
    display_name = args.display_name or f"Python {version} (recorded)"
    content = kernelspecs.kernelspec(python, display_name, tuple(options))
    target = kernelspecs.install(_directory(args, prefix), args.name, content)
    print(f"installed {display_name!r} in {printable(str(target))}")
    return 0


def _directory(args: argparse.Namespace, prefix: str) -> Path:
    if args.prefix is not None:
        return kernelspecs.prefix_directory(Path(args.prefix).absolute())
    return kernelspecs.prefix_directory(prefix) if args.sys_prefix else kernelspecs.user_directory()


def _interpreter(given: str | None) -> str:
    """Return the path of the kernel's interpreter. Raises UsageError if programs of it cannot be recorded."""
    if given is None:
        return sys.executable
    found = shutil.which(given)
    if found is None:
        raise UsageError(f"No such interpreter: {given!r} (--python).")
    path = os.path.abspath(found)  # noqa: PTH100 - a link leads to the interpreter, and is in the environment
    split_command([path, "-c", "pass"])
    return path


def _asked(python: str) -> tuple[str, str]:
    """Return the version of an interpreter and its prefix. Raises UsageError if it has no ipykernel."""
    code = "import sys, ipykernel; print('%d.%d' % sys.version_info[:2]); print(sys.prefix)"
    try:
        done = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, timeout=_ASKED_WITHIN, check=False, cwd="/"
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{python!r} did not import ipykernel within {_ASKED_WITHIN} s.") from None
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) < 2:
        raise UsageError(
            f"{python!r} cannot run a kernel: it cannot import ipykernel. Install ipykernel there, or name another "
            "interpreter with --python."
        )
    return lines[-2], lines[-1]


def _status(*, is_json: bool) -> int:
    found = kernelspecs.installed(kernelspecs.searched())
    if is_json:
        rows = [each._asdict() | {"directory": str(each.directory), "problem": each.problem or None} for each in found]
        print_json({"kernels": rows})
    elif found:
        rows_shown = [
            tuple(
                map(printable, (each.name, each.display_name, each.python, str(each.directory), each.problem or "ok"))
            )
            for each in found
        ]
        print_table(("name", "shown as", "python", "directory", "status"), rows_shown)
    else:
        print("No kernel is recorded: `replaydbg jupyter install` adds one.")
    return int(any(each.problem for each in found))
