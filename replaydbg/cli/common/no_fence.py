"""The option `--no-fence` of every command that replays."""

from __future__ import annotations

import sys

from replaydbg.config import is_fence_wanted, leave_fence_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

_OPTION = "--no-fence"


def add_no_fence(parser: argparse.ArgumentParser) -> None:
    """Declare the option, for `--help`: `without_fence` has removed it before the options are parsed."""
    parser.add_argument(
        _OPTION,
        action="store_true",
        help="replay without isolation: the recorded program runs with all your rights (only for your own recordings)",
    )


def without_fence(words: list[str]) -> list[str]:
    """Remove the option from the words and apply it; print a warning if the fence is off."""
    rest = [word for word in words if word != _OPTION]
    if len(rest) < len(words):
        leave_fence_out()
    if not is_fence_wanted():
        print(
            "replaydbg: replaying without the fence (--no-fence): the recorded program runs with all your rights.",
            file=sys.stderr,
        )
    return rest
