"""The command lines of the tool that the harnesses use, and nothing else: they see it as a user does."""

from collections.abc import Sequence
from pathlib import Path

# The tool's exit code for a divergence.
DIVERGED = 4
# The tool's exit code for a recording that ends before the program did.
ENDS_EARLY = 6


def record(python: str, recording: Path, argv: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """Record `python *argv` into `recording`, without the tool's own messages on stderr.

    Its children are not recorded unless the options say so: `recording` is one file.
    """
    return [python, "-m", "replaydbg", "record", "-q", "--children=none", *options, "-o", str(recording), "--", *argv]


def replay(python: str, recording: Path) -> list[str]:
    """Replay `recording`; stdout and stderr are the program's alone unless it diverges."""
    return [python, "-m", "replaydbg", "replay", "-q", str(recording)]
