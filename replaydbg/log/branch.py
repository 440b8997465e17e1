"""The live directory of a child that was forked: its recording is its parent's up to the fork, then its own.

`branch.json` in it says how many bytes of its parent's sections come first. A sealed recording has them all, and needs
no other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import Corrupt, ReplaydbgError
from replaydbg.events.run_facts import Branch
from replaydbg.log.allowance import load_json
from replaydbg.log.entries.logfile import LOG_HEADER, LogHeader, pack_log_header, read_log_header
from replaydbg.log.files import BRANCH, PIECE, DataFile, bytes_behind
from replaydbg.log.header_and_end import JSON_LIMIT, parse_branch
from replaydbg.log.live_directory import LiveDirectory
from replaydbg.log.sealed.sections import InPlace, SealedFile, Sections
from replaydbg.secrets.patches import Patches

MOST_DEEP = 64
"""Maximum number of ancestors that are read: the recorder makes at most 50."""

_LOGS = ("log", "world")


def open_live(path: Path, *, depth: int = 0) -> Sections:
    """Return the sections of a live directory, those of a forked child with its parent's before them.

    Raises NotARecording, or Corrupt if what it needs of its parent cannot be known.
    """
    own = LiveDirectory(path)
    try:
        branch = _read_branch(path)
        if branch is None:
            return own
        if depth >= MOST_DEEP:
            raise Corrupt(str(path), f"it has more than {MOST_DEEP} ancestors")
        return BranchSections(path, own, branch, _open_parent(path, branch, depth))
    except BaseException:
        own.close()
        raise


def bytes_before(path: Path) -> dict[str, int]:
    """Return how many bytes of each section a live directory takes from its parent; 0 if that is no forked child's.

    Raises Corrupt.
    """
    branch = _read_branch(path)
    return _taken(branch[1]) if branch is not None else dict.fromkeys(("log", "world", "content"), 0)


def _taken(branch: Branch) -> dict[str, int]:
    return {"log": branch.log, "world": branch.world, "content": branch.content}


def _read_branch(path: Path) -> tuple[int, Branch] | None:
    if not os.path.lexists(path / BRANCH):
        return None
    with DataFile(path / BRANCH, follow=False) as file:
        data = file.read(0, 1 << 12)
    try:
        return parse_branch(str(path), load_json(data))
    except ValueError as error:
        raise Corrupt(str(path), f"its {BRANCH} cannot be read") from error


def _open_parent(path: Path, branch: tuple[int, Branch], depth: int) -> Sections | None:
    """Return the sections of the parent's recording; None: it is missing, or cannot be read."""
    sealed, live = (path.parent / f"{branch[1].process}{ending}" for ending in (".rdbg", ".rdbg-live"))
    found = _open_sealed(sealed)
    if found is not None or not os.path.lexists(live):
        return found or _open_sealed(sealed)  # sealed just now
    directory = None
    with suppress(ReplaydbgError):
        directory = open_live(live, depth=depth + 1)
    found = _open_sealed(sealed)  # once it is there, files of the live directory go: some may have been missing
    if found is None:
        return directory
    if directory is not None:
        directory.close()
    return found


def _open_sealed(path: Path) -> SealedFile | None:
    with suppress(ReplaydbgError):
        return SealedFile(path) if os.path.lexists(path) else None
    return None


class BranchSections:
    """The sections of a live directory with its parent's before them."""

    ok = False
    signature = None

    def __init__(self, path: Path, own: LiveDirectory, branch: tuple[int, Branch], parent: Sections | None) -> None:
        self.problems = own.problems
        self._path = path
        self._own = own
        self._process, self._branch = branch
        self._parent = parent
        self._before = _taken(self._branch)
        self._missing: set[str] = set()
        self.group: object = None
        """The identity of its group, as its header has it."""
        try:
            self.group = _group_of(own)
            self._check_group()
            for name, before in self._before.items():
                self._check_before(name, before)
        except BaseException:
            self.close()
            raise

    def _check_group(self) -> None:
        # That of a branch was read when it was opened, and its header is made from its own.
        if isinstance(self._parent, BranchSections):
            parent = self._parent.group
        else:
            parent = _group_of(self._parent) if self._parent is not None else None
        if parent is None:
            self.problems[f"The recording of its parent, process {self._branch.process}, is missing or damaged."] = True
            self._missing.update(self._before)
        elif parent != self.group:
            raise Corrupt(str(self._path), f"the recording of process {self._branch.process} belongs to another group")

    def _check_before(self, name: str, before: int) -> None:
        if self._parent is None or name in self._missing:
            return
        there = self._parent.size(name)
        if name in _LOGS:
            header = read_log_header(next(self._parent.pieces(name), b"")[:LOG_HEADER])
            there = min(there, header.committed) if header is not None else 0
        if before > there:
            self.problems[
                f"It begins after {before:,} bytes of its parent's section {name!r}, which has only {there:,}."
            ] = True
            self._missing.add(name)

    @property
    def before(self) -> Mapping[str, int]:
        """How many bytes of each section its parent wrote before."""
        return self._before

    @property
    def masked(self) -> None:
        """Nothing: secrets are masked when a recording is sealed."""

    @property
    def secrets(self) -> Patches:
        """Nothing."""
        return {}

    @property
    def hidden(self) -> None:
        """Nothing: secrets are masked when a recording is sealed."""

    def names(self) -> tuple[str, ...]:
        """Return the names of the sections that have bytes."""
        found = list(self._own.names())
        if self._branch.content and "content" not in found:
            found.append("content")
        return tuple(found)

    def size(self, name: str) -> int:
        """Return the number of bytes found of a section; 0 if it does not exist."""
        if name == "header":
            return len(self._header())
        if name not in self._before or (name in _LOGS and not self._own.size(name)):
            return self._own.size(name)
        if name in self._missing:
            return min(LOG_HEADER, self._own.size(name)) if name in _LOGS else 0
        return self._before[name] + max(self._own.size(name) - (LOG_HEADER if name in _LOGS else 0), 0)

    def stored(self, name: str) -> int:
        """Return how many bytes of the disk a section takes."""
        return self.size(name)

    def is_whole(self, name: str) -> bool:
        """Whether nothing is known to be missing at the section's end."""
        return name not in self._missing

    def pieces(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a section's bytes from `start`; where its parent's are missing, nothing but a log's header."""
        if name == "header" or name in _LOGS:  # they are short, or read as a whole
            yield from bytes_behind(start, self._pieces(name))
        elif name not in self._before:
            yield from self._own.pieces(name, start)
        else:
            yield from self._pieces(name, start)

    def _pieces(self, name: str, skipped: int = 0) -> Iterator[bytes]:
        if name == "header":
            yield self._header()
            return
        if name not in self._before:
            yield from self._own.pieces(name)
            return
        if name in _LOGS:
            header = self._log_header(name)
            if header is None:
                return
            yield pack_log_header(header)
            skipped = LOG_HEADER
        if name in self._missing:
            return
        assert self._parent is not None or not self._before[name], name
        if self._before[name] > skipped and self._parent is not None:
            yield from self._of_parent(self._parent, name, skipped)
        if name not in self._missing:
            yield from self._own.pieces(name, skipped if name in _LOGS else max(skipped - self._before[name], 0))

    def _of_parent(self, parent: Sections, name: str, start: int) -> Iterator[bytes]:
        left = self._before[name] - start
        for piece in parent.pieces(name, start):
            yield piece[:left]
            left -= min(left, len(piece))
            if not left:
                return
        self.problems[f"A part of its parent's section {name!r} is damaged."] = True
        self._missing.add(name)

    def _log_header(self, name: str) -> LogHeader | None:
        header = read_log_header(next(self._own.pieces(name), b"")[:LOG_HEADER])
        if header is None:
            return None
        committed = self._before[name] + min(header.committed, 1 << 62) - LOG_HEADER
        return header._replace(committed=min(committed, 1 << 62))

    def _header(self) -> bytes:
        """Return the header: its parent's with what differs."""
        data = b"".join(self._own.pieces("header"))
        try:
            header = load_json(data) if len(data) <= JSON_LIMIT else None
        except ValueError:
            header = None
        if not isinstance(header, dict):
            return data  # the reader says what is wrong with it
        # Its name is that of the group's first process: run-12/1.
        name = str(header.get("name", "")).rpartition("/")[0]
        more = {"name": f"{name}/{self._process}", "process": self._process, "branch": self._branch._asdict()}
        return json.dumps({**header, **more}).encode()

    def stored_pieces(self, name: str) -> Iterator[bytes]:
        """Yield the same: there are no masks."""
        return self.pieces(name)

    def in_place(self, name: str) -> InPlace | None:
        """Return None: what a process wrote is not in one file with its parent's."""
        return None

    def is_shared(self, name: str) -> bool:
        """Whether a section has only shared blocks."""
        return False

    def shared_names(self) -> set[str]:
        """Return nothing: a live directory shares no blocks."""
        return set()

    def shared_blocks(self, name: str) -> Iterator[tuple[int, bytes]]:
        """Raise Corrupt: a live directory has no blocks."""
        return self._own.shared_blocks(name)

    def close(self) -> None:
        """Close the files."""
        self._own.close()
        if self._parent is not None:
            self._parent.close()


def _group_of(sections: Sections) -> object:
    """Return the identity in the header, or something else if it has none; None: there is no header to read."""
    data = b"".join(sections.pieces("header"))
    try:
        header = load_json(data) if len(data) <= JSON_LIMIT else None
    except ValueError:
        header = None
    return header.get("group", "") if isinstance(header, dict) else None


def whole_pieces(pieces: Iterator[bytes], end: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of `pieces` up to `end` again, in pieces of the size of a block."""
    held = bytearray()
    left = end
    for piece in pieces:
        held += piece if left is None else piece[:left]
        left = None if left is None else left - min(left, len(piece))
        while len(held) >= PIECE:
            yield bytes(held[:PIECE])
            del held[:PIECE]
    if held:
        yield bytes(held)
