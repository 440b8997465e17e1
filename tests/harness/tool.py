"""The command lines of the tool that the harnesses use, and nothing else: they see it as a user does."""

from collections.abc import Sequence
from pathlib import Path

# What the tool's exit code is when a replay left the recording.
DIVERGED = 4
# What it is when the recording ends before the program did.
ENDS_EARLY = 6


def record(python: str, recording: Path, argv: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """Records `python *argv` into `recording`, without the tool's own words on stderr."""
    return [python, "-m", "replaydbg", "record", "-q", *options, "-o", str(recording), "--", *argv]


def replay(python: str, recording: Path) -> list[str]:
    """Replays `recording`; stdout and stderr are the program's alone unless it diverges."""
    return [python, "-m", "replaydbg", "replay", "-q", str(recording)]
