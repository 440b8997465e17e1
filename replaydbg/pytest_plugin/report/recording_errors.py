"""Why a test has no recording, if that could not be written beside it: from the session's directory."""

from __future__ import annotations

from contextlib import suppress
from io import FileIO
from pathlib import Path

from replaydbg.events.stops import StopReason
from replaydbg.log.entries.logfile import LOG_HEADER, read_log_header
from replaydbg.pytest_plugin.shared.json_reader import read_json
from replaydbg.pytest_plugin.shared.shared_names import LaunchToken
from replaydbg.store.directory import GROUP, LIVE, SEALED
from replaydbg.store.sessions import SESSION, messages, session_directory


def why_stopped(token: LaunchToken) -> str:
    """Return why a process is no longer recorded; empty: it is, or the reason is unknown."""
    name = SESSION.removesuffix(SEALED)
    try:
        with _log(_session(token) / f"{name}{LIVE}", _session(token) / f"{name}{GROUP}" / f"1{LIVE}") as log:
            header = read_log_header(log.read(LOG_HEADER))
    except OSError:
        return ""
    stopped = header.stopped if header is not None else StopReason.NOT_STOPPED
    return stopped.cause or ""


def _log(*lives: Path) -> FileIO:
    """Open the log of the first live directory that exists. Raises OSError."""
    live = next((each for each in lives if each.is_dir()), lives[0])
    # Without a buffer: we are recorded ourselves, and of a longer read a megabyte of the log would be kept each time.
    return (live / "log").open("rb", buffering=0)


def why_unwritten(token: LaunchToken, slug: str) -> str:
    """Return why the launcher could not write a test's files; empty if it has reported no reason."""
    if not _session(token).is_dir():
        return "the directory of the session was removed"
    for line in messages(_session(token)):
        with suppress(ValueError):  # it is being written
            match read_json(line):
                case [str(name), str(reason)] if name == slug:
                    return reason
    return ""


def _session(token: LaunchToken) -> Path:
    return session_directory(Path(token.directory), token.parent)
