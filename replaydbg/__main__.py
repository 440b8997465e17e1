"""Entry point of `python -m replaydbg`, the same as the `replaydbg` command."""

import sys

# Before anything is imported that such a Python cannot even parse: pip would not have installed us there.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.stderr.write("replaydbg: Python %s is too old: replaydbg needs 3.11 or newer.\n" % sys.version.split()[0])  # noqa: UP031
    sys.exit(1)

# The interpreter puts the working directory first for -m, if there is one: a json.py there must not become ours.
if __name__ == "__main__" and not sys.flags.safe_path and not sys.path[0].endswith(".zip"):
    del sys.path[0]

from replaydbg.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
