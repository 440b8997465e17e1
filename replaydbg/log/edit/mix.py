"""Mix two recordings of a program: the log of one, with some inputs of the other."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from replaydbg.events.records import Control, ControlKind, Event, WorldAnswer
from replaydbg.events.stops import StopReason
from replaydbg.events.values import Value
from replaydbg.log.coding.codec import FORMAT
from replaydbg.log.edit.definitions import Definitions, Places, answered, shifted, world_records
from replaydbg.log.edit.schedule import OtherTurns, without_preemptions
from replaydbg.log.entries.logfile import LOG_HEADER, LogHeader, pack_log_header
from replaydbg.log.entries.raw import RawRecord
from replaydbg.log.reader import Recording

_SHARED = ("world", "content", "end.json")


@dataclass(frozen=True, slots=True)
class Mixture:
    """The inputs of the other recording that replace those of the base."""

    answers: Mapping[int, int] = field(default_factory=dict)
    """The number of an event of the base to that of the other recording's event with the answer."""
    outcomes: Mapping[int, Value] = field(default_factory=dict)
    """The number of an event of the base to an outcome that is in neither recording, such as a shifted clock's."""
    hash_seed: bool = False
    arguments: bool = False
    directory: bool = False
    environment: frozenset[str] = frozenset()
    """Names of environment variables."""


class Mixer:
    """Mixes the answers of one recording into another one.

    The log has the records of `base`, some with another answer, up to its end; these are followed by the events of
    `other`, as answers of last resort for a lenient replay: a run that takes the path of `other` asks what that one
    asked. All of them, in order: data read from a descriptor belongs to the event that opened it.
    """

    def __init__(self, base: Recording, other: Recording, place: Path) -> None:
        """Read both; `place` is a directory for the files that all logs share."""
        self.base, self.other, self.place = base, other, place
        self.definitions = Definitions()
        self.records = self._read()
        self._others = self._read_others()
        spares = (self._moved(raw, number) for number, raw in self._others.items())
        self.spares = [each for each in spares if each is not None]
        self._write_shared()

    # ---- reading ----

    def _read(self) -> list[RawRecord]:
        records = list(self.base.records())
        for raw in records:
            if raw.is_definition:
                self.definitions.load(raw.data)
        return [raw for raw in records if raw.entry is not None]

    def _read_others(self) -> dict[int, RawRecord]:
        self._places = Places()
        found: dict[int, RawRecord] = {}
        for raw in self.other.records():
            if raw.is_definition:
                self._places.load(raw.data)
            elif isinstance(raw.entry, Event):
                found[raw.entry.number] = raw
        return found

    @cached_property
    def _gates(self) -> dict[int, int]:
        """The other recording's gates by their numbers in the base."""
        here = {gate.name: number for number, gate in enumerate(self.base.header.gates, 1)}
        there = enumerate(self.other.header.gates, 1)
        return {number: here[gate.name] for number, gate in there if gate.name in here}

    @cached_property
    def _shift(self) -> int:
        """The offset of the other recording's contents."""
        return self.base.size("content")

    def _moved(self, raw: RawRecord, number: int) -> bytes | None:
        assert isinstance(raw.entry, Event), number
        return self._places.moved(raw.data, raw.entry, self._gates, self.definitions, self._shift)

    # ---- shared by all logs ----

    def _write_shared(self) -> None:
        with (self.place / "content").open("wb") as content:
            for recording in (self.base, self.other):
                for piece in recording.pieces("content"):
                    content.write(piece)
        known = list(self.base.world())
        asked = {(each.operation, each.path) for each in known}
        more = [each for each in self.other.world() if (each.operation, each.path) not in asked]
        data = world_records(chain(known, (self._world_answer(each) for each in more)))
        header = self.base.log_header
        assert header is not None, "it was read"
        (self.place / "world").write_bytes(_log(data, 0, header.start_ns))
        (self.place / "end.json").write_bytes(self.base.section("end"))

    def _world_answer(self, answer: WorldAnswer) -> WorldAnswer:
        return WorldAnswer(
            answer.operation, answer.path, answer.asked, answer.raised, shifted(answer.outcome, self._shift)
        )

    # ---- one log ----

    def write(
        self,
        target: Path,
        mixture: Mixture,
        left_out: Collection[int] = (),
        turns: OtherTurns | None = None,
    ) -> None:
        """Write to `target` the base with the inputs of `mixture`, and without the preemptions `left_out`.

        `turns` names the switches at which another thread than the recorded one continues.
        """
        target.mkdir()
        for name in _SHARED:
            os.link(self.place / name, target / name)
        (target / "header.json").write_text(json.dumps(self._header(mixture)), encoding="utf-8")
        answers = {here: self._answer(here, there, mixture) for here, there in mixture.answers.items()}
        records = list(without_preemptions(self._answered(answers), left_out, turns))
        is_ended = any(isinstance(raw.entry, Control) and raw.entry.kind is ControlKind.END for raw in self.records)
        # Without an end nothing could follow it.
        spares = self.spares if is_ended else []
        events = sum(isinstance(raw.entry, Event) for raw in self.records) + len(spares)
        header = self.base.log_header
        assert header is not None, "it was read"
        # Written last: the answers may have added definitions. They come first in the log.
        (target / "log").write_bytes(
            _log(b"".join([*self.definitions.data, *records, *spares]), events, header.start_ns)
        )

    def _answered(self, answers: dict[int, Event]) -> Iterator[RawRecord]:
        for raw in self.records:
            if isinstance(raw.entry, Event) and raw.entry.number in answers:
                by = answers[raw.entry.number]
                yield RawRecord(answered(raw.data, by, self.definitions, self._shift), raw.entry)
            else:
                yield raw

    def _answer(self, here: int, there: int, mixture: Mixture) -> Event:
        by = self._others[there].entry
        assert isinstance(by, Event), "only they were read"
        return replace(by, outcome=mixture.outcomes[here]) if here in mixture.outcomes else by

    def _header(self, mixture: Mixture) -> dict[str, object]:
        other = self.other.header.raw
        environment = dict(self.base.header.env)
        for name in mixture.environment:
            environment.pop(name, None)
            if name in self.other.header.env:
                environment[name] = self.other.header.env[name]
        taken = {"hash_seed": mixture.hash_seed, "argv": mixture.arguments, "cwd": mixture.directory}
        changed = {key: other[key] for key, is_taken in taken.items() if is_taken}
        return {**self.base.header.raw, "env": environment} | changed


def _log(data: bytes, crossings: int, start_ns: int) -> bytes:
    header = LogHeader(FORMAT, StopReason.NOT_STOPPED, LOG_HEADER + len(data), crossings, start_ns)
    return pack_log_header(header) + data
