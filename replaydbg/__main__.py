"""Lets `python -m replaydbg` do what the `replaydbg` command does."""

import sys

# The interpreter puts the working directory first for -m: a json.py of the program there must not become ours.
if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]

from replaydbg.cli.main import main  # noqa: E402 - after the line above, which is for it

if __name__ == "__main__":
    raise SystemExit(main())
