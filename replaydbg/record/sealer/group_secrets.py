"""The secrets of a group: what one of its processes has received as a secret is masked in the recordings of all.

A process can have passed a secret on only after it received it. So when a recording is sealed, the logs of the others
have the secret by then, and it is searched there: in what was added since the last search.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.log.branch import BranchSections, open_live
from replaydbg.log.entries.logfile import LOG_HEADER, read_log_header
from replaydbg.log.hidden import secrets_masked_in
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


def _end(sections: Sections, name: str) -> int:
    """Return the end of what a section has; the file of a log is longer, by pages that have no records yet."""
    size = sections.size(name)
    if name == "content":
        return size
    header = read_log_header(next(sections.pieces(name), b"")[:LOG_HEADER])
    return min(header.committed, size) if header is not None else 0


class _LiveSecrets:
    """The secrets of a process whose recording is being written."""

    def __init__(self, live: Path) -> None:
        self.found: set[bytes] = set()
        self._live = live
        self._ends = dict.fromkeys((*_SEARCHED, "world"), 0)
        """Up to where each section was searched."""
        self._places: dict[str, set[SecretPlace]] = {name: set() for name in _SEARCHED}
        self._in_sources: set[bytes] = set()

    def update(self) -> None:
        """Search what was added. Raises what opening a live directory raises, and OSError."""
        sections = open_live(self._live)
        try:
            with searching_for(patterns_of_live(self._live)):
                self._search(sections)
        finally:
            sections.close()

    def _search(self, sections: Sections) -> None:
        header = HeaderSecrets(b"".join(sections.pieces("header")))
        if header.keeps_secrets:
            return
        before = sections.before if isinstance(sections, BranchSections) else {}
        has_more = False
        for name in _SEARCHED:
            # What its parent wrote before is searched in the parent's recording.
            first = max(self._ends[name] - WIDEST - MOST_BEFORE, before.get(name, 0))
            end = _end(sections, name)
            if end > self._ends[name]:
                found = places_in_pieces(sections.pieces(name, first))
                new = {each._replace(at=first + each.at) for each in found}
                has_more = has_more or not new <= self._places[name]
                self._places[name] |= new
                self._ends[name] = end
        if _end(sections, "world") > self._ends["world"]:  # it has imported something
            self._ends["world"] = _end(sections, "world")
            self._in_sources = set[bytes]().union(*map(secrets_in, own_sources(self._live)))
        if has_more:
            in_log, in_content = (sorted(self._places[name]) for name in _SEARCHED)
            self.found |= exact_secrets(in_log, in_content, sections.pieces("log"))
        self.found |= {*header.secrets(), *self._in_sources}
