"""The reader of durable logs finds the longest whole beginning, whatever a power cut leaves of the pages.

The oracle is a writer in Python that keeps each version of the file: what was synchronised must be found, and what is
found must have been written, and end where a record did.
"""

import random
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.log.coding.encode import varint
from replaydbg.log.entries.checksums import CHECKSUM, Stretches, is_durable, whole_stretches
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import DataFile

PAGE = 64
"""Of this disk: as small as the stretches."""


class _Writer:
    """Writes stretches as the core does; `versions` has the whole file after each step."""

    def __init__(self, *, world: int = 0) -> None:
        self.data = bytearray(LOG_HEADER)
        self.versions = [bytes(self.data)]
        self.ends = [LOG_HEADER]
        """Where a record may end, and a reader."""
        self.heads: list[int] = []
        """Where the CHECKSUM records begin."""
        self.world = world
        self.events = 0
        self._begin_stretch()

    def _begin_stretch(self) -> None:
        self._first_event = self.events
        self.heads.append(len(self.data))
        self.data += bytes([CHECKSUM << 2 | 2]) + bytes(24)
        self._start, self._slot = len(self.data), 0
        for number in (self.events, self.world, 0, 0):
            self.data += varint(number)
        self._commit()

    def _commit(self) -> None:
        covered = bytes(self.data[self._start :])
        facts = struct.pack("<II", len(covered), self.events - self._first_event)
        self._slot = 1 - self._slot
        at = self._start - 24 + 12 * self._slot
        self.data[at : at + 12] = facts + struct.pack("<I", zlib.crc32(covered + facts))
        self.ends.append(len(self.data))
        self.versions.append(bytes(self.data))

    def add(self, record: bytes) -> None:
        """Append the record of an event."""
        self.data += record
        self.events += 1
        self._commit()

    def sync(self) -> None:
        """Synchronise: from now on the disk has at least this."""
        self._begin_stretch()


_STEPS = st.lists(st.one_of(st.just(None), st.binary(min_size=1, max_size=90)), min_size=1, max_size=25)


def _written(steps: list[bytes | None]) -> tuple[_Writer, int, int]:
    """Return the writer, the number of the last synchronised version, and where the log ended then."""
    writer, synced = _Writer(), (0, LOG_HEADER)
    for step in steps:
        if step is None:
            end = len(writer.data)
            writer.sync()
            synced = (len(writer.versions) - 1, end)
        else:
            writer.add(step)
    return writer, *synced


def _read(path: Path, data: bytes, world: int | None = None) -> Stretches:
    path.write_bytes(data)
    with DataFile(path) as file:
        return whole_stretches(file, world=world)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file."""
    return tmp_path_factory.mktemp("logs") / "log"


@given(_STEPS)
def test_a_whole_log_is_read_to_its_end(path: Path, steps: list[bytes | None]) -> None:
    writer, _, _ = _written(steps)

    found = _read(path, bytes(writer.data) + bytes(200))

    assert (found.end, found.events) == (len(writer.data), writer.events)


@given(_STEPS, st.randoms(use_true_random=False))
def test_any_mixture_of_pages_has_what_was_synchronised(
    path: Path, steps: list[bytes | None], chance: random.Random
) -> None:
    writer, first, least = _written(steps)
    size = len(writer.data) + 100
    versions = [each.ljust(size, b"\0") for each in writer.versions[first:]]
    data = b"".join(chance.choice(versions)[at : at + PAGE] for at in range(0, size, PAGE))

    found = _read(path, data)

    assert found.end >= least
    assert found.end in writer.ends
    assert _without_slots(data, found.end, writer) == _without_slots(bytes(writer.data), found.end, writer)


@given(_STEPS, st.data())
def test_pages_of_zeros_and_cuts_end_it_early(path: Path, steps: list[bytes | None], data: st.DataObject) -> None:
    writer, _, _ = _written(steps)
    damaged = bytearray(writer.data)
    pages = len(damaged) // PAGE
    for page in data.draw(st.lists(st.integers(1, max(pages, 1)), max_size=3)):
        damaged[page * PAGE : (page + 1) * PAGE] = bytes(len(damaged[page * PAGE : (page + 1) * PAGE]))
    del damaged[data.draw(st.integers(LOG_HEADER, len(damaged))) :]

    found = _read(path, bytes(damaged))

    assert found.end in writer.ends
    assert _without_slots(bytes(damaged), found.end, writer) == _without_slots(bytes(writer.data), found.end, writer)


@given(st.binary(max_size=400))
def test_any_bytes_can_be_read(path: Path, data: bytes) -> None:
    found = _read(path, bytes(LOG_HEADER) + data)

    assert LOG_HEADER <= found.end <= LOG_HEADER + len(data)


def test_a_process_killed_between_two_stores_keeps_the_slot_before(path: Path) -> None:
    writer = _Writer()
    writer.add(b"one")
    end = len(writer.data)
    writer.add(b"two")
    torn = bytearray(writer.data)
    at = LOG_HEADER + 1 + 12 * writer._slot
    torn[at + 8 : at + 12] = bytes(4)

    found = _read(path, bytes(torn))

    assert (found.end, found.events) == (end, 1)


def test_nothing_follows_a_stretch_that_is_not_whole(path: Path) -> None:
    """Or a file could have the same bytes compared for each of its stretches."""
    writer = _Writer()
    for _ in range(100):
        writer.sync()
    data = bytearray(writer.data)
    for at in writer.heads:
        # The slot that was not used claims everything up to the end.
        data[at + 1 : at + 13] = struct.pack("<III", len(data) - at - 25, 0, 1)

    assert _read(path, bytes(data)).stretches == 1


def test_events_that_refer_to_a_lost_part_of_the_import_world_are_left_out(path: Path) -> None:
    writer = _Writer(world=500)
    writer.add(b"before")
    end = len(writer.data)
    writer.world = 501
    writer.sync()
    writer.add(b"after")

    assert _read(path, bytes(writer.data), world=500).end == end
    assert "import world" in _read(path, bytes(writer.data), world=500).why
    assert _read(path, bytes(writer.data), world=501).end == len(writer.data)


def test_a_log_without_checksums_is_not_durable(path: Path) -> None:
    path.write_bytes(bytes(LOG_HEADER) + b"\x0a\x00")
    with DataFile(path) as file:
        assert not is_durable(file)


def _without_slots(data: bytes, end: int, writer: _Writer) -> bytes:
    """Return the bytes up to `end` but for the slots, which lie behind each head that the writer wrote."""
    cleared = bytearray(data[:end])
    for at in writer.heads:
        cleared[at + 1 : at + 25] = bytes(len(cleared[at + 1 : at + 25]))
    return bytes(cleared)
