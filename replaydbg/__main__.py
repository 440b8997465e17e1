"""Entry point of `python -m replaydbg`, the same as the `replaydbg` command."""

import sys

# Checked before importing modules that such an old Python cannot even parse: pip would not have installed us there.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.stderr.write("replaydbg: Python %s is too old: replaydbg needs 3.11 or newer.\n" % sys.version.split()[0])  # noqa: UP031
    sys.exit(1)

# For -m the interpreter puts the working directory first on the path: a json.py there must not shadow the real one.
if __name__ == "__main__" and not sys.flags.safe_path and not sys.path[0].endswith(".zip"):
    del sys.path[0]

from replaydbg.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
