"""The notice about a recording that this user did not make, whose program is about to run."""

from __future__ import annotations

from replaydbg.config import is_fence_wanted
from replaydbg.errors import ReplaydbgError, quoted
from replaydbg.events.show import printable
from replaydbg.log.reader import open_recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def foreign_text(path: Path, name: str) -> str:
    """Return one sentence about a recording that is not this user's; `name` is how the user names it.

    Empty: no program of it can run, since it cannot be read or needs secrets.
    """
    try:
        with open_recording(path) as recording:
            recording.check_secrets()
            signed = recording.signature
    except ReplaydbgError:
        return ""  # as the command is about to find out
    shown = printable(quoted(name))
    # A copy of a live directory may be the user's own, see `origin`.
    doubt = f"nothing shows that you recorded {shown}" if path.is_dir() else f"{shown} was not recorded by you"
    if signed is not None:
        doubt += f", {'but' if signed.is_trusted else 'and'} is signed by {printable(str(signed))}"
    how = "behind the fence" if is_fence_wanted() else "with all your rights"
    return f"{doubt} with this installation: the program in it now runs {how} (see messages#foreign-recording)."
