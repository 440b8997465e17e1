"""Data collected when a recorded program has ended: its notes and the installed packages."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.events.stops import StopReason
from replaydbg.launch.process import Ended
from replaydbg.log.entries.logfile import LOG_HEADER, LogHeader, read_log_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.json_data import EndData, NoteData


def describe_end(live: Path, ended: Ended, seconds: float) -> EndData:
    """Return the content of `end.json`, without the sources (see `sources.py`); includes the core's notes."""
    header = _log_header(live / "log")
    after = computed_after(header, ended.cpu_seconds, time.monotonic_ns())
    pairs = _lines(live)
    notes = _notes(live, pairs)
    (live / "notes").unlink(missing_ok=True)
    return {
        "status": ended.status,
        "seconds": round(seconds, 6),
        "cpu_seconds": round(ended.cpu_seconds, 6),
        "cpu_after": round(after, 3),
        "cpu_between": round(header.longest_ms / 1000, 3),
        "exception": _exception(pairs) if ended.status else "",
        "reason": header.stopped.cause,
        "events": header.crossings,
        "notes": notes,
        "packages": packages(_search_path(live)),
        "sources": {},
        "ok": True,
    }


def log_was_made(live: Path) -> bool:
    """Whether the program's process got as far as having both logs to write to: before that no program runs."""
    try:
        for name in ("log", "world"):
            with (live / name).open("rb") as file:
                if read_log_header(file.read(LOG_HEADER)) is None:
                    return False
    except OSError:
        return False
    return True


def computed_after(header: LogHeader, cpu_seconds: float, now_ns: int) -> float:
    """Return how many seconds the program computed after its last record, at most."""
    if not header.last_ns:
        return cpu_seconds
    passed = (now_ns - header.last_ns) / 1e9
    return max(min(cpu_seconds - header.cpu_ms / 1000, passed), 0.0)


def _log_header(path: Path) -> LogHeader:
    """Return the header of the log; for one that was never begun, an empty one."""
    try:
        with path.open("rb") as file:
            header = read_log_header(file.read(LOG_HEADER))
    except OSError:
        header = None
    return header or LogHeader(0, StopReason.NOT_STOPPED, LOG_HEADER, 0, 0)


def notes_of(live: Path) -> list[NoteData]:
    """Return the notes so far on what cannot be recorded."""
    return _notes(live, _lines(live))


def _lines(live: Path) -> list[tuple[str, str]]:
    """Return what the core has written for the launcher: kinds and texts."""
    try:
        lines = (live / "notes").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return []  # there is nothing
    return [(kind, text) for kind, _, text in (line.partition("\t") for line in lines if line)]


def _exception(pairs: list[tuple[str, str]]) -> str:
    """Return the type of the last exception that nobody caught; a program can give it any name."""
    name = next((text for kind, text in reversed(pairs) if kind == "exception"), "")
    return "".join(name.split())[:200]


def _notes(live: Path, pairs: list[tuple[str, str]]) -> list[NoteData]:
    notes: list[NoteData] = [
        {"kind": kind, "text": text.replace("\v", "\n"), "count": 1} for kind, text in pairs if kind not in _OTHERS
    ]
    return notes + _children(_not_recorded(live, pairs))


_OTHERS = frozenset({"child", "silent", "exception"})
"""Kinds that are no notes of their own: a child process had standard streams, and it wrote nothing to them (both are
counted); the type of an exception that nobody caught.
"""

_STREAMS = {1: "standard output", 2: "standard error", 3: "standard output and standard error"}


def _not_recorded(live: Path, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the notes without those on children of a group that are recorded themselves."""
    if not any(kind == "child" and "\t" in text for kind, text in pairs):
        return pairs
    # Imported here: few recordings are of groups.
    from replaydbg.log.group import page_rows

    try:
        recorded = {str(row.number) for row in page_rows(live.parent)[0] if row.recording}
    except (OSError, ReplaydbgError):
        recorded = set()
    split = [(kind, *text.partition("\t")) if kind == "child" else (kind, text, "", "") for kind, text in pairs]
    return [(kind, text) for kind, text, _, number in split if number not in recorded]


def _children(pairs: list[tuple[str, str]]) -> list[NoteData]:
    """Return the note on the child processes that could write to the program's streams, if there were any."""
    silent = max((int(text) for kind, text in pairs if kind == "silent" and text.isdigit()), default=0)
    had = [int(text) & 3 & ~silent for kind, text in pairs if kind == "child" and text.isdigit()]
    had = [streams for streams in had if streams]
    if not had:
        return []
    streams = 0
    for each in had:
        streams |= each
    processes = "1 child process" if len(had) == 1 else f"{len(had)} child processes"
    text = f"{processes} inherited {_STREAMS[streams]}; anything they wrote there is not part of the recording"
    return [{"kind": "children", "text": text.replace("they", "it") if len(had) == 1 else text, "count": len(had)}]


def _search_path(live: Path) -> list[str]:
    """Return where the program's packages are: in another environment than ours, its own directories for them."""
    try:
        prefix = json.loads((live / "header.json").read_bytes())["python"]["prefix"]
    except (OSError, ValueError, KeyError, TypeError):
        return sys.path
    if prefix == sys.prefix or not isinstance(prefix, str):
        return sys.path
    # Imported here: only the program of another environment needs it.
    import site

    return site.getsitepackages([prefix])


def packages(search_path: list[str]) -> dict[str, str]:
    """Return installed distributions by the names of their metadata directories (importlib.metadata costs 30 ms)."""
    found: dict[str, str] = {}
    for directory in search_path:
        try:
            # Not pathlib: there may be hundreds.
            names = os.listdir(directory) if directory else []  # noqa: PTH208
        except OSError:
            continue  # entries of sys.path need not exist
        for name in names:
            if name.endswith(".dist-info"):
                package, _, version = name.removesuffix(".dist-info").rpartition("-")
                found.setdefault(package, version)
    return dict(sorted(found.items()))
