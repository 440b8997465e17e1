"""Lets `python -m replaydbg` do what the `replaydbg` command does."""

import sys

# The interpreter puts the working directory first for -m, if there is one: a json.py there must not become ours.
if __name__ == "__main__" and not sys.flags.safe_path and not sys.path[0].endswith(".zip"):
    del sys.path[0]

from replaydbg.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
