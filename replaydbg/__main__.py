"""Entry point of `python -m replaydbg`, the same as the `replaydbg` command."""

import sys

# Checked before importing modules that such an old Python cannot even parse: pip would not have installed us there.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.stderr.write("replaydbg: Python %s is too old: replaydbg needs 3.11 or newer.\n" % sys.version.split()[0])  # noqa: UP031
    sys.exit(1)

# Files are read by calls that this system does not have.
if sys.platform == "win32":
    sys.stderr.write("replaydbg: Windows is not supported: use replaydbg in the Windows Subsystem for Linux (WSL).\n")
    sys.exit(1)

# For -m the interpreter puts the working directory first on the path: a json.py there must not shadow the real one.
if __name__ == "__main__" and not sys.flags.safe_path and not sys.path[0].endswith(".zip"):
    del sys.path[0]


def run() -> int:
    """Run the command of this process's command line, and return the exit code."""
    try:
        # Imported here: Ctrl-C in these milliseconds is a Ctrl-C like any other.
        from replaydbg.cli.main import main

        return main()
    except KeyboardInterrupt:  # before the command could handle it, or after it had ended
        from replaydbg.launch.endings import end_like

        return end_like(-2)  # SIGINT


if __name__ == "__main__":
    raise SystemExit(run())
