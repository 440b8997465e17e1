"""Builds the log of a run that never was: that of one recording, with some of the answers that another one got."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from replaydbg.bisect.twins import Input, Told
from replaydbg.events.records import Control, ControlKind, Event, WorldAnswer
from replaydbg.events.stops import StopReason
from replaydbg.hunt.schedule import OtherTurns, without_preemptions
from replaydbg.log.codec import FORMAT
from replaydbg.log.logfile import LOG_HEADER, LogHeader, pack_log_header
from replaydbg.log.raw import Definitions, Places, Raw, answered, shifted, world_records
from replaydbg.log.reader import Recording

_SHARED = ("world", "content", "end.json")


class Mixer:
    """Mixes the answers of one recording into another one.

    The log has the records of `base`, some with another answer, up to its end; behind that stand the events of `other`,
    as answers of last resort for a lenient replay: a run that goes the way of `other` asks what that one asked. All of
    them, in order: what is read from a descriptor belongs to the event that opened it.
    """

    def __init__(self, base: Recording, other: Recording, place: Path, *, is_bad_base: bool) -> None:
        """Read both; `place` is a directory for what all logs share."""
        self.base, self.other, self.place, self.is_bad_base = base, other, place, is_bad_base
        self.definitions = Definitions()
        self.records = self._read()
        self._others = self._read_others()
        spares = (self._moved(raw, number) for number, raw in self._others.items())
        self.spares = [each for each in spares if each is not None]
        self._write_shared()

    # ---- reading ----

    def _read(self) -> list[Raw]:
        records = list(self.base.records())
        for raw in records:
            if raw.entry is None:
                self.definitions.load(raw.data)
        return [raw for raw in records if raw.entry is not None]

    def _read_others(self) -> dict[int, Raw]:
        self._places = Places()
        found: dict[int, Raw] = {}
        for raw in self.other.records():
            if raw.entry is None:
                self._places.load(raw.data)
            elif isinstance(raw.entry, Event):
                found[raw.entry.number] = raw
        return found

    @cached_property
    def _gates(self) -> dict[int, int]:
        """The numbers of the other recording's gates here."""
        here = {gate.name: number for number, gate in enumerate(self.base.header.gates, 1)}
        there = enumerate(self.other.header.gates, 1)
        return {number: here[gate.name] for number, gate in there if gate.name in here}

    @cached_property
    def _shift(self) -> int:
        """Where the contents of the other recording begin."""
        return self.base.size("content")

    def _moved(self, raw: Raw, number: int) -> bytes | None:
        assert isinstance(raw.entry, Event), number
        return self._places.moved(raw.data, raw.entry, self._gates, self.definitions, self._shift)

    # ---- what all logs share ----

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
        changes: Collection[Input],
        left_out: Collection[int] = (),
        turns: OtherTurns | None = None,
    ) -> None:
        """Write the recording in which `changes` are as in the other one, and without the preemptions `left_out`.

        `turns` says where another thread than the recorded one goes on.
        """
        target.mkdir()
        for name in _SHARED:
            os.link(self.place / name, target / name)
        (target / "header.json").write_text(json.dumps(self._header(changes)), encoding="utf-8")
        answers = {self._here(each): self._answer(each) for each in changes if each.told is Told.ANSWER}
        records = list(without_preemptions(self._answered(answers), left_out, turns))
        is_ended = any(isinstance(raw.entry, Control) and raw.entry.kind is ControlKind.END for raw in self.records)
        # Without an end nothing could stand behind it.
        spares = self.spares if is_ended else []
        events = sum(isinstance(raw.entry, Event) for raw in self.records) + len(spares)
        header = self.base.log_header
        assert header is not None, "it was read"
        # Definitions last: the answers may have brought new ones. They come first in the log.
        (target / "log").write_bytes(
            _log(b"".join([*self.definitions.data, *records, *spares]), events, header.start_ns)
        )

    def _answered(self, answers: dict[int, Event]) -> Iterator[Raw]:
        for raw in self.records:
            if isinstance(raw.entry, Event) and raw.entry.number in answers:
                by = answers[raw.entry.number]
                yield Raw(answered(raw.data, by, self.definitions, self._shift), raw.entry)
            else:
                yield raw

    def _here(self, each: Input) -> int:
        return each.bad_event if self.is_bad_base else each.good_event

    def _answer(self, each: Input) -> Event:
        by = self._others[each.good_event if self.is_bad_base else each.bad_event].entry
        assert isinstance(by, Event), "only they were read"
        return replace(by, outcome=each.good if self.is_bad_base else each.bad_elapsed) if each.is_elapsed else by

    def _header(self, changes: Collection[Input]) -> dict[str, Any]:
        header = {**self.base.header.raw, "env": dict(self.base.header.raw["env"])}
        other = self.other.header.raw
        for each in changes:
            if each.told is Told.HASH_SEED:
                header["hash_seed"] = other["hash_seed"]
            elif each.told is Told.ENVIRONMENT:
                with suppress(KeyError):
                    del header["env"][each.name]
                if each.name in other["env"]:
                    header["env"][each.name] = other["env"][each.name]
            elif each.told is Told.ARGUMENTS:
                header["argv"] = other["argv"]
            elif each.told is Told.DIRECTORY:
                header["cwd"] = other["cwd"]
        return header


def _log(data: bytes, crossings: int, start_ns: int) -> bytes:
    header = LogHeader(FORMAT, StopReason.NOT_STOPPED, LOG_HEADER + len(data), crossings, start_ns)
    return pack_log_header(header) + data
