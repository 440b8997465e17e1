"""The secrets of a group: what one of its processes has received as a secret is masked in the recordings of all.

A process can have passed a secret on only after it received it. So when a recording is sealed, the logs of the others
have the secret by then, and it is searched there: in what was added since the last search.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.log.branch import bytes_before, open_live
from replaydbg.log.container import live_pieces
from replaydbg.log.edit.content_parts import Contents
from replaydbg.log.edit.joined_secrets import JoinedSecrets
from replaydbg.log.entries.logfile import LOG_HEADER, read_log_header
from replaydbg.log.hidden import secrets_masked_in
from replaydbg.log.live_directory import LiveDirectory
from replaydbg.log.sealed.sections import Sections
from replaydbg.record.caches.sources import own_sources
from replaydbg.record.hiding import HeaderSecrets, exact_secrets
from replaydbg.secrets.secret_rules import MOST_BEFORE, WIDEST, SecretPlace, places_in_pieces, secrets_in
from replaydbg.secrets.user_patterns import patterns_of_live, searching_for
from replaydbg.store.directory import is_group

_SEARCHED = ("log", "content")


class GroupSecrets:
    """The secrets that the processes of a group have received so far."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._live: dict[int, _LiveSecrets] = {}
        self._sealed: dict[int, set[bytes]] = {}

    def of_others(self, number: int) -> set[bytes]:
        """Return the secrets of all other processes, whose recordings are live or sealed."""
        found: set[bytes] = set()
        for path in self._directory.glob("*.rdbg*"):
            name, _, ending = path.name.partition(".")
            if name.isdecimal() and int(name) != number and ending in ("rdbg", "rdbg-live"):
                found |= self.of(int(name))
        return found

    def of(self, number: int) -> set[bytes]:
        """Return the secrets of one process; of one that another process has sealed what its user can see of them."""
        sealed, live = (self._directory / f"{number}{ending}" for ending in (".rdbg", ".rdbg-live"))
        known = self._live.get(number)
        if live.is_dir() and not sealed.exists():
            known = self._live.setdefault(number, _LiveSecrets(live))
            with suppress(ReplaydbgError, OSError):  # it is sealed just now
                known.update()
        if number not in self._sealed and sealed.exists():
            self._sealed[number] = secrets_masked_in(sealed)
        return self._sealed.get(number, set()) | (known.found if known is not None else set())

    @property
    def known(self) -> set[bytes]:
        """Those that were found so far."""
        return set[bytes]().union(*(each.found for each in self._live.values()), *self._sealed.values())


def secrets_of_others(live: Path) -> set[bytes]:
    """Return the secrets of the other processes of the group that a live directory is in; none if it is in none."""
    number = live.name.partition(".")[0]
    if not number.isdecimal() or not is_group(live.parent):
        return set()
    return GroupSecrets(live.parent).of_others(int(number))


def _end(path: Path) -> int:
    """Return the end of what a file of a live directory has; that of a log is longer, by pages without records yet."""
    try:
        size = path.stat().st_size
        if path.name == "content":
            return size
        with path.open("rb") as file:
            header = read_log_header(file.read(LOG_HEADER))
    except OSError:
        return 0
    return min(header.committed, size) if header is not None else 0


class _LiveSecrets:
    """The secrets of a process whose recording is being written."""

    def __init__(self, live: Path) -> None:
        self.found: set[bytes] = set()
        self._live = live
        self._ends = dict.fromkeys(_SEARCHED, 0)
        """Up to where each section was searched."""
        self._seen: dict[str, int] = {}
        """Where each had ended when all of it was searched."""
        self._places: dict[str, set[SecretPlace]] = {name: set() for name in _SEARCHED}
        self._in_sources: set[bytes] = set()
        self._joined: JoinedSecrets | None = None
        """The search for secrets in several values; None: it has not begun."""
        self._joined_end = LOG_HEADER
        """Up to where its log, with what it has of its parent's, was read for that."""

    def update(self) -> None:
        """Search what was added. Raises what opening a live directory raises, and OSError."""
        ends = {name: _end(self._live / name) for name in (*_SEARCHED, "world")}
        if ends == self._seen:  # as most others: those that wait, and those that have ended
            return
        # Without its ancestors: what they wrote before is searched in their recordings, and opening them all takes as
        # many times longer as it has ancestors.
        own = LiveDirectory(self._live)
        try:
            with searching_for(patterns_of_live(self._live)):
                self._search(own, has_imported=ends["world"] != self._seen.get("world"))
        finally:
            own.close()
        if all(own.size(name) >= end for name, end in ends.items()):  # a durable log ends where it is whole
            self._seen = ends

    def _search(self, own: LiveDirectory, *, has_imported: bool) -> None:
        header = HeaderSecrets(b"".join(own.pieces("header")))
        if header.keeps_secrets:
            return
        if has_imported:
            self._in_sources = set[bytes]().union(*map(secrets_in, own_sources(self._live, inherited=False)))
        has_more = False
        before = bytes_before(self._live)
        for name in _SEARCHED:
            first = max(self._ends[name] - WIDEST - MOST_BEFORE, 0)
            end = min(_end(self._live / name), own.size(name))
            if end > self._ends[name]:
                # Behind what its parent wrote; a log's header is in both.
                shift = first + before[name] - (LOG_HEADER if name == "log" and before[name] else 0)
                new = {each.moved(shift) for each in places_in_pieces(own.pieces(name, first))}
                has_more = has_more or not new <= self._places[name]
                self._places[name] |= new
                self._ends[name] = end
        if has_more:
            self.found |= self._exact()
        if self._ends["log"] != self._seen.get("log"):
            self.found |= self._in_parts(own, before["log"])
        self.found |= {*header.secrets(), *self._in_sources}

    def _exact(self) -> set[bytes]:
        in_log, in_content = (sorted(self._places[name]) for name in _SEARCHED)
        sections = open_live(self._live)
        try:
            return exact_secrets(in_log, in_content, sections.pieces("log"))
        finally:
            sections.close()

    def _in_parts(self, own: LiveDirectory, before: int) -> set[bytes]:
        """Search for secrets in several values in what was added; `before` bytes of the log are its parent's."""
        sections: Sections | None = None
        if self._joined is None:
            self._joined = JoinedSecrets(Contents(self._content_pieces), max(before - LOG_HEADER, 0))
            # Only now with its ancestors, who have defined what its records refer to.
            sections = open_live(self._live)
        try:
            # Behind what its parent wrote; a log's header is in both.
            first = self._joined_end - (before - LOG_HEADER if before else 0)
            pieces = own.pieces("log", first) if sections is None else sections.pieces("log", LOG_HEADER)
            for piece in pieces:
                self._joined.add(piece)
                self._joined_end += len(piece)
        finally:
            if sections is not None:
                sections.close()
        return self._joined.found()

    def _content_pieces(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a section of contents from `start`: of what its ancestors wrote before it was forked from theirs."""
        before = bytes_before(self._live)[name]
        if start >= before:
            yield from live_pieces(self._live, name, start - before)
            return
        sections = open_live(self._live)
        try:
            yield from sections.pieces(name, start)
        finally:
            sections.close()
