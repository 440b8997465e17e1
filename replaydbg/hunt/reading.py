"""Read the two recordings that are to be compared, and refuse those that cannot be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePath

from replaydbg.bisect.lane_turns import LaneKey, rank_of_turns, read_lanes
from replaydbg.bisect.twins import ReadRecording
from replaydbg.errors import Corrupt, NotComparable
from replaydbg.events.records import Site
from replaydbg.events.run_facts import Header
from replaydbg.gates.row import OPENS, OPENS_FIRST
from replaydbg.gates.table import table_of_recording
from replaydbg.log.reader import Recording, open_recording


# Without slots: cached properties need a dictionary.
@dataclass(frozen=True)
class Twins(AbstractContextManager["Twins"]):
    """The two recordings, open."""

    good: Recording
    bad: Recording
    good_side: ReadRecording
    bad_side: ReadRecording

    def __exit__(self, *exc_info: object) -> None:
        self.good.close()
        self.bad.close()

    @cached_property
    def rank(self) -> Callable[[LaneKey, int], int]:
        """Maps a thread and its number of events to the place in the order of the good run."""
        return rank_of_turns(self.good_side.turns)

    def text(self, site: Site) -> str:
        """Return the source line at a site of the bad run, stripped; empty if it is not available."""
        return self.line(site.file, site.line)

    def line(self, file: str | None, line: int | None) -> str:
        """Return the same for a line of a file."""
        return _Lines(self.bad).text(file, line)


def open_twins(good: Path, bad: Path) -> Twins:
    """Open a good and a bad recording of the same program.

    Raises NotComparable if they are of two programs or two Pythons, or if one of them is incomplete; and everything
    that `open_recording` raises.
    """
    one = open_recording(good)
    try:
        two = open_recording(bad)
    except BaseException:
        one.close()
        raise
    try:
        _check(one, two)
        lines = _Lines(one), _Lines(two)
        return Twins(one, two, _side(one, lines[0], lines[1]), _side(two, lines[1], lines[0]))
    except BaseException:
        one.close()
        two.close()
        raise


def _check(good: Recording, bad: Recording) -> None:
    if good.path.resolve() == bad.path.resolve():
        raise NotComparable("The two are the same recording.")
    one, two = good.header, bad.header
    if _program(one) != _program(two):
        raise NotComparable(
            f"They are recordings of two different programs, {_program(one)[1]!r} and {_program(two)[1]!r}."
        )
    if one.python.hexversion != two.python.hexversion or one.python.soabi != two.python.soabi:
        raise NotComparable(f"They were made with Python {one.python.version} and with {two.python.version}.")
    for recording in (good, bad):
        if not recording.ok or recording.end is None or recording.end.reason:
            why = recording.problems[0] if recording.problems else "It has no end: its program was still running."
            if recording.end is not None and recording.end.reason:
                why = f"It ends early: {recording.end.reason}."
            raise NotComparable(f"{recording.name!r} is incomplete, and does not show how the run ended. {why}")


def _program(header: Header) -> tuple[str, str]:
    """Return what identifies a program in both recordings: it may have been started in two directories."""
    if header.kind in ("script", "directory"):
        return header.kind, PurePath(header.target).name
    return header.kind, header.target


def _side(recording: Recording, own: _Lines, other: _Lines) -> ReadRecording:
    found = read_lanes(recording.events())
    if recording.damage:
        raise Corrupt(str(recording.path), recording.damage[0])
    key = _line_key(own, other)
    table = table_of_recording(sys.path, recording.header.raw.get("rows"))
    return ReadRecording(
        header=recording.header,
        events=found.events,
        lanes=found.lanes,
        preemptions=found.preemptions,
        turns=found.turns,
        afters=found.afters,
        line_key=key,
        content=recording.content,
        openers=frozenset(row.full_name for row in table if row.flags & (OPENS | OPENS_FIRST)),
    )


class _Lines:
    """The sources of a recording, line by line."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.hashes = dict(recording.end.sources) if recording.end is not None else {}
        self.by_name = {PurePath(path).name: digest for path, digest in self.hashes.items()}
        self.read = cache(self._read)

    def text(self, file: str | None, line: int | None) -> str:
        lines = self.read(self.hashes[file]) if file in self.hashes else []
        return lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else ""

    def _read(self, digest: str) -> list[str]:
        try:
            return self.recording.section(f"source/{digest}").decode("utf-8", "replace").splitlines()
        except Corrupt:
            return []  # without the source the line's number has to do


def _line_key(own: _Lines, other: _Lines) -> Callable[[Site], Hashable]:
    """Return a function that identifies a site across both recordings: by the line's text if the file was changed."""

    @cache
    def key(site: Site) -> Hashable:
        if site.file is None:
            return None
        name = PurePath(site.file).name
        digest = own.hashes.get(site.file)
        if digest is None or digest == other.hashes.get(site.file, other.by_name.get(name)):
            return name, site.line, site.instruction
        return name, own.text(site.file, site.line)

    return key
