"""Lets `python -m replaydbg` do what the `replaydbg` command does."""

from replaydbg.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
