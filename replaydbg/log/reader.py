"""Open recordings: sealed or live, whole, cut or damaged. Reading one executes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import Corrupt, NewerFormat, SecretsMasked
from replaydbg.events.records import Entry, Event, WorldAnswer
from replaydbg.events.run_facts import End, Header
from replaydbg.events.values import ContentRef
from replaydbg.log.allowance import FLOOR, LOG_FLOOR, allowance
from replaydbg.log.branch import open_live
from replaydbg.log.coding.encode import FORMAT
from replaydbg.log.entries.logfile import LOG_HEADER, LogHeader, read_log_header
from replaydbg.log.entries.raw import RawRecord, RawStream
from replaydbg.log.entries.stream import LogStream
from replaydbg.log.group import name_in_group
from replaydbg.log.header_and_end import JSON_LIMIT, parse_end, parse_header
from replaydbg.log.replay_files import Unpacked, first_masks, records, unpack
from replaydbg.log.sealed.sections import InPlace, SealedFile, Sections
from replaydbg.log.sealed.shared import EMPTY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO, TypeVar

    from replaydbg.log.entries.selected_events import PassedEvents
    from replaydbg.log.signature import Signed
    from replaydbg.secrets.patches import Patches

    _Stream = TypeVar("_Stream", bound=LogStream)

MEMORY_LIMIT = 1 << 30
"""The longest section or content that is returned as one bytes object."""


class Checked(NamedTuple):
    """Result of checking a whole recording: how much was read."""

    sizes: dict[str, int]
    """The length of each section in bytes."""
    events: int
    """Number of events."""
    answers: int
    """Number of answers of the file system to the import system."""


class Recording:
    """An open recording. Close it, or use it as a context manager.

    Damaged or missing data does not raise: reading ends there, and `problems` describes it.
    """

    def __init__(self, path: Path, *, with_secrets: bool = True, with_signature: bool = True) -> None:
        """Open the recording at `path`; see `open_recording`."""
        self.path = path
        """The sealed file or live directory."""
        self.is_live = os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where it may not look
        """Whether it is a live directory."""
        self._sections: Sections = (
            open_live(path)
            if self.is_live
            else SealedFile(path, with_secrets=with_secrets, with_signature=with_signature)
        )
        try:
            self.header: Header = self._read_header()
            self.end: End | None = self._read_end()
            """How the program ended; None if that was never written, or is lost."""
            self.log_header: LogHeader | None = self._read_log_header("log")
            """The event log's header; None if there is no event log."""
            self._world_header = self._read_log_header("world")
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The name without its ending, such as `run-12`, or `run-12/3` of a process in a group."""
        return name_in_group(self.path) or self.path.name.removesuffix(".rdbg").removesuffix(".rdbg-live")

    @property
    def ok(self) -> bool:
        """Whether the recording was sealed after its program had ended."""
        return self._sections.ok and self.end is not None and self.end.ok

    @property
    def signature(self) -> Signed | None:
        """The signature beside it, which matches it; None: there is none."""
        return self._sections.signature

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences about damaged or missing data, as far as it was read. Reading more can add to them."""
        return tuple(self._sections.problems)

    @property
    def damage(self) -> tuple[str, ...]:
        """The problems that are not explained by a killed recorder."""
        return tuple(sentence for sentence, is_damage in self._sections.problems.items() if is_damage)

    @property
    def masked(self) -> dict[str, int]:
        """How many places of each section are masked; empty: it has no secrets, or is live."""
        masked = self._sections.masked
        return {name: len(places) for name, places in masked.places.items()} if masked is not None else {}

    @property
    def secrets(self) -> Patches:
        """The bytes that are masked in it, as far as this user has a key for them."""
        return self._sections.secrets

    @property
    def recipients(self) -> tuple[str, ...]:
        """The public keys for which its secrets are encrypted."""
        masked = self._sections.masked
        return masked.recipients if masked is not None else ()

    @property
    def masked_for(self) -> tuple[str, ...]:
        """The public keys for which its secrets are encrypted, if this user has none of them; see `is_hidden`."""
        hidden = self._sections.hidden
        return hidden.recipients if hidden is not None else ()

    @property
    def is_hidden(self) -> bool:
        """Whether it has secrets that this user cannot see; without recipients, nobody can."""
        return self._sections.hidden is not None

    @property
    def sections(self) -> tuple[str, ...]:
        """The names of the existing sections."""
        return self._sections.names()

    def size(self, name: str) -> int:
        """Return the size of a section in bytes (uncompressed); 0 if it does not exist."""
        return self._sections.size(name)

    def stored(self, name: str) -> int:
        """Return how many bytes on the disk a section takes."""
        return self._sections.stored(name)

    def is_shared(self, name: str) -> bool:
        """Whether a section has only shared blocks."""
        return self._sections.is_shared(name)

    def shared_blocks(self, name: str) -> Iterator[tuple[int, bytes]]:
        """Yield the blocks for `Writer.shared` of a section that has only shared ones. Raises Corrupt."""
        return self._sections.shared_blocks(name)

    def shared_names(self) -> set[str]:
        """Return the names of all blocks outside it that it needs. Raises Corrupt if damage hides them."""
        if self.end is None and not self.is_live:
            raise Corrupt(str(self.path), "its end is missing")
        return self._sections.shared_names() | set(self.end.sources.values() if self.end is not None else ())

    def pieces(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a section's bytes from `start`, a piece at a time, up to the first damage, which becomes a problem."""
        return self._sections.pieces(name, start)

    def stored_pieces(self, name: str) -> Iterator[bytes]:
        """Yield a section's bytes as they are in the recording, with the masks."""
        return self._sections.stored_pieces(name)

    def section(self, name: str, *, limit: int = MEMORY_LIMIT) -> bytes:
        """Return a section as a whole. Raises Corrupt if it is missing, damaged or longer than `limit`."""
        size = self._sections.size(name)
        if not size:
            raise Corrupt(str(self.path), f"it has no section {name!r}")
        return self._read(name, 0, size, limit)

    def content(self, ref: ContentRef) -> bytes:
        """Return the bytes that `ref` refers to. Raises Corrupt if they are missing."""
        return self._read("content", ref.offset, ref.length, MEMORY_LIMIT)

    def events(
        self, *, gate: str | None = None, first: int = 1, last: int | None = None, controls: bool = True
    ) -> Iterator[Entry]:
        """Yield the entries of the event log in order.

        With `gate` (a shell pattern such as `time.*`) only the events of those gates; `first` and `last` are the
        numbers of the first and the last event; `controls`: whether to include control records.
        """
        stream = self._stream("log", self.log_header, LogStream)
        for entry in stream.entries():
            number = entry.number if isinstance(entry, Event) else entry.after
            if last is not None and number > last:
                return
            if isinstance(entry, Event):
                if entry.number >= first and (gate is None or fnmatchcase(entry.gate, gate)):
                    yield entry
            elif controls and gate is None and entry.after >= first - 1:
                yield entry
        self._finish("event log", stream, f"{stream.crossings} events before that can be read")

    def selected_events(self, wanted: Callable[[str], bool]) -> Iterator[Entry | PassedEvents]:
        """Yield the entries of the event log in order; events of gates that are not `wanted` are only counted."""
        # Imported here: only what reads whole logs for a few gates needs it.
        from replaydbg.log.entries.selected_events import SelectedStream

        stream = self._stream("log", self.log_header, partial(SelectedStream, wanted=wanted))
        yield from stream.selected()
        self._finish("event log", stream, f"{stream.crossings} events before that can be read")

    def world(self) -> Iterator[WorldAnswer]:
        """Yield the file system's answers to the import system."""
        stream = self._stream("world", self._world_header, LogStream)
        yield from stream.answers()
        self._finish("import world", stream, "everything before that can be read")

    def check(self) -> Checked:
        """Read every byte and check every record; `problems` and `damage` describe what is wrong.

        The time is limited by the file's size, also for a file that expands to very much: see security.md.
        """
        for name, floor in (("log", LOG_FLOOR), ("world", FLOOR), ("content", FLOOR)):
            size, stored = self.size(name), self.stored(name)
            if size > allowance(stored, floor=floor):
                self._problem(f"Its section {name!r} claims {size:,} bytes, too many for its {stored:,} stored bytes.")
                return Checked({}, 0, 0)
        sizes = {name: sum(map(len, self.pieces(name))) for name in self.sections}
        log = self._stream("log", self.log_header, LogStream)
        log.check_entries()
        self._finish("event log", log, f"{log.crossings} events before that can be read")
        answers = sum(1 for _ in self.world())
        self._check_fork(log.crossings)
        self._check_transfers()
        self.check_sources()
        return Checked(sizes, log.crossings, answers)

    def _check_fork(self, events: int) -> None:
        """Check that a forked child leaves its parent's recording at a fork."""
        branch = self.header.branch
        if branch is None or branch.event == events + 1:  # or it was killed before it recorded anything
            return
        event = next(self.events(first=branch.event, last=branch.event, controls=False), None)
        gate, outcome = (event.gate, event.outcome) if isinstance(event, Event) else ("", None)
        pid = outcome[0] if isinstance(outcome, tuple) and outcome else outcome
        if gate not in ("posix.fork", "posix.forkpty") or pid != 0:
            self._problem(f"Its header says that it was forked at event {branch.event}, which is no such fork.")

    def _check_transfers(self) -> None:
        """Check what a process of a group sent and received."""
        # Imported here: only groups have it.
        from replaydbg.log.transfers import read_transfers

        try:
            read_transfers(self)
        except Corrupt as error:
            self._problem(f"{error.reason[0].upper()}{error.reason[1:]}.")

    def check_sources(self) -> None:
        """Check that the sources are there: they may be beside the recording, where no section names them."""
        if self.end is None or self.is_live:
            return
        missing = [path for path, name in self.end.sources.items() if name != EMPTY and not self.size(f"source/{name}")]
        if missing:
            self._problem(f"{len(missing):,} sources are missing or damaged, such as that of {missing[0]!r}.")

    def unpack(self, target: Path | Mapping[str, BinaryIO]) -> Unpacked:
        """Write `log`, `world` and `content` in the form that a replay needs.

        `target` is an existing directory, where none of the three may exist, or three files open for reading and
        writing by these names. Without a file for it, the content is only checked, see `content_in_place`. A log that
        is damaged is written up to its last undamaged record. Raises Corrupt if there is no event log at all.
        """
        if self.log_header is None:
            raise Corrupt(str(self.path), "it has no event log")
        headers = {"log": self.log_header, "world": self._world_header}
        try:
            return unpack(self._sections, headers, self.header.gates, target)
        except SecretsMasked as error:
            raise SecretsMasked(str(self.path), error.recipients) from None

    def check_secrets(self) -> None:
        """Raise SecretsMasked if a replay cannot begin without the secrets that this user cannot see."""
        try:
            first_masks(self._sections)
        except SecretsMasked as error:
            raise SecretsMasked(str(self.path), error.recipients) from None

    def content_in_place(self) -> InPlace | None:
        """Return where the content is in the recording; None if it has to be unpacked before it can be used."""
        return self._sections.in_place("content")

    def close(self) -> None:
        """Close the files; may be called repeatedly."""
        self._sections.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _problem(self, sentence: str, *, is_damage: bool = True) -> None:
        self._sections.problems[sentence] = is_damage

    def _read(self, name: str, start: int, length: int, limit: int) -> bytes:
        if length > limit:
            raise Corrupt(str(self.path), f"{length} bytes of its section {name!r} are more than can be read at once")
        stored = self._sections.stored(name)
        if not self.is_live and stored and length > allowance(stored):
            claim = f"its section {name!r} claims {length:,} bytes, far more than its {stored:,} stored bytes"
            raise Corrupt(str(self.path), claim)
        if start + length > self._sections.size(name):
            raise Corrupt(str(self.path), f"bytes {start} to {start + length} of its section {name!r} are missing")
        pieces = []
        missing = length
        for piece in self._sections.pieces(name, start):
            pieces.append(piece[:missing])
            missing -= len(pieces[-1])
            if not missing:
                break
        if missing or (start == 0 and length == self.size(name) and not self._sections.is_whole(name)):
            raise Corrupt(str(self.path), f"a part of its section {name!r} is missing")
        return b"".join(pieces)

    def _read_header(self) -> Header:
        if not self._sections.size("header"):
            raise Corrupt(str(self.path), "its header is missing, and without it nothing can be read")
        return parse_header(str(self.path), self.section("header", limit=JSON_LIMIT))

    def _read_end(self) -> End | None:
        if not self._sections.size("end"):
            # Either it was never sealed, or its index is lost, which is damage of its own.
            self._problem("How the program ended is not recorded.", is_damage=False)
            return None
        try:
            return parse_end(str(self.path), self.section("end", limit=JSON_LIMIT))
        except Corrupt as error:
            self._problem(f"How the program ended cannot be read: {error.reason}.")
            return None

    def _read_log_header(self, name: str) -> LogHeader | None:
        data = next(self._sections.pieces(name), b"")[:LOG_HEADER]
        header = read_log_header(data)
        if header is None:
            self._problem(f"Its section {name!r} is missing." if not data else f"Its section {name!r} has no header.")
        elif header.format > FORMAT:
            raise NewerFormat(str(self.path), header.format, FORMAT)
        elif header.committed > self._sections.size(name):
            self._problem(
                f"Its section {name!r} is cut off: {self._sections.size(name)} of {header.committed} bytes are there."
            )
        return header

    def records(self) -> Iterator[RawRecord]:
        """Yield the records of the event log with their bytes, definitions included."""
        stream = self._stream("log", self.log_header, RawStream)
        yield from stream.records()
        self._finish("event log", stream, f"{stream.crossings} events before that can be read")

    def _stream(self, name: str, header: LogHeader | None, kind: Callable[..., _Stream]) -> _Stream:
        end = min(header.committed, self._sections.size(name)) if header is not None else 0
        return kind(
            records(self._sections.pieces(name), end),
            total=max(0, end - LOG_HEADER),
            stored=self._sections.stored(name),
            gates=self.header.gates,
        )

    def _finish(self, what: str, stream: LogStream, rest: str) -> None:
        if stream.problem is not None:
            self._problem(f"Its {what} {stream.problem}; {rest}.")


def open_recording(path: Path | str, *, with_secrets: bool = True, with_signature: bool = True) -> Recording:
    """Open a recording: a sealed file, or a live directory; the file beside it if that was sealed since.

    Without `with_secrets` its secrets stay masked, even if this user has the key: for what is written to other files.
    Without `with_signature` a signature beside it is not looked at: for what signs it anew.
    Raises NoSuchRecording, NotARecording, NewerFormat, SignatureRefused if the signature beside it does not match, or
    Corrupt if not even the header can be read.
    """
    path = Path(path)
    # Only if it is gone: beside a directory there can be an earlier file, which the new recording will replace.
    if path.name.endswith(".rdbg-live") and not os.path.lexists(path):
        sealed = path.with_name(path.name.removesuffix("-live"))
        path = sealed if os.path.lexists(sealed) else path
    return Recording(path, with_secrets=with_secrets, with_signature=with_signature)
