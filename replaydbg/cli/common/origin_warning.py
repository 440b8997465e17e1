"""Warn when a command is about to run a program from a recording that this user did not make."""

from __future__ import annotations

import sys

from replaydbg.config import is_fence_wanted
from replaydbg.errors import ReplaydbgError, quoted
from replaydbg.log.sealed.origin import is_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def warn_if_foreign(path: Path, name: str, *, quiet: bool = False) -> None:
    """Print one sentence on stderr if the recording at `path` is not this user's; `name` is how the user names it."""
    if quiet or sys.stderr is None or is_own(path):
        return
    # Imported here: the user's own recordings do not need them.
    from replaydbg.events.show import printable
    from replaydbg.log.reader import open_recording

    try:
        with open_recording(path) as recording:
            recording.check_secrets()
            signed = recording.signature
    except ReplaydbgError:
        return  # no program of it can run, as the command is about to find out
    shown = printable(quoted(name))
    # A copy of a live directory may be the user's own, see `origin`.
    doubt = f"nothing shows that you recorded {shown}" if path.is_dir() else f"{shown} was not recorded by you"
    if signed is not None:
        doubt += f", {'but' if signed.is_trusted else 'and'} is signed by {printable(str(signed))}"
    how = "behind the fence" if is_fence_wanted() else "with all your rights"
    print(
        f"replaydbg: {doubt} with this installation: the program in it now runs {how} "
        "(see messages#foreign-recording).",
        file=sys.stderr,
    )
