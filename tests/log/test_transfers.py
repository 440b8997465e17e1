"""The section `transfers`: written by a synthetic writer here, read as columns, and checked when it is hostile."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.errors import Corrupt
from replaydbg.events.transfers import DIGEST_MODULUS, Endpoint, Transfer, digest_of, joined_digest
from replaydbg.log import transfers as module
from replaydbg.log.cut_transfers import transfers_before
from replaydbg.log.reader import open_recording
from replaydbg.log.transfers import SLOT, has_transfers, read_transfers
from replaydbg.native import _core
from tests.harness.build import Example, LogBuilder, header_json
from tests.harness.transfers import pack_transfers

PIPE = Endpoint(1, "pipe", "13:77", "13:77", 0, "")
UDP = Endpoint(2, "udp", "127.0.0.1:9", "", 41, "")
SOCKET = Endpoint(3, "unix", "5", "6", 40, "/tmp/" + "s" * 100 + "\udcff", "/tmp/peer", 4711)
HEADER = 64


def sent(event: int = 1, begun: int = 0, ticket: int = 1, **more: Any) -> Transfer:
    plain = Transfer(event, begun, ticket, 1, "send", 3, digest_of(b"abc"), "", False, False)
    return plain._replace(**more)


class Made:
    """The sections of a recording with this many events."""

    def __init__(self, section: bytes, events: int = 9) -> None:
        log = LogBuilder()
        for _ in range(events):
            log.crossing(0, 1.0, has_frame=False)
        self._sections = {"log": log.to_bytes(), "transfers": section}

    def size(self, name: str) -> int:
        return len(self._sections[name])

    stored = size

    def pieces(self, name: str) -> Any:
        return iter([self._sections[name]])


def written(endpoints: list[Endpoint], transfers: list[Transfer], events: int = 9) -> tuple[list[Endpoint], Any]:
    return read_transfers(Made(pack_transfers(endpoints, transfers), events))


def test_everything_comes_back() -> None:
    ends = [PIPE, UDP, SOCKET]
    transfers = [
        sent(),
        sent(2, 1, 4, endpoint=2, address="10.0.0.1:53", way="receive", peeks=True),
        sent(9, 2, 5, endpoint=3, length=1 << 47, urgent=True, is_partly_known=True),
        sent(4, 3, 6, endpoint=2, address="10.0.0.2:53", stream=2),
        sent(6, 4, 7, endpoint=2, address="10.0.0.1:53", stream=1, length=0, digest=0),
        sent(7, 5, 8, passes=True),
    ]

    found, columns = written(ends, transfers)

    assert found == ends
    assert list(columns.transfers()) == transfers
    assert columns.count == 6
    assert columns.addresses == ["", "10.0.0.1:53", "10.0.0.2:53"]


def test_descriptors_that_were_passed_come_back() -> None:
    ends = [PIPE, UDP]
    section = pack_transfers(ends, [sent(passes=True)], ((1, 2), (1, 1), (99, 1), (0, 1)))

    found, columns = read_transfers(Made(section))

    assert found == ends
    assert columns.passed == ((1, 2), (1, 1))  # event 99 is not in the log
    with pytest.raises(Corrupt, match="a descriptor of endpoint 3, which it does not define"):
        read_transfers(Made(pack_transfers(ends, [sent()], ((1, 3),))))


@pytest.mark.parametrize("events", range(7))
def test_the_part_up_to_an_event(events: int) -> None:
    """Transfers that began later are left out, and those that had not ended are open."""
    transfers = [sent(1, 0), sent(5, 1, 2, endpoint=3), sent(3, 2, 3, endpoint=2, address="10.0.0.1:53"), sent(4, 3, 4)]

    found, columns = read_transfers(
        Made(transfers_before(pack_transfers([PIPE, UDP, SOCKET], transfers), events), events)
    )

    began = [each for each in transfers if each.begun < events]
    assert [each.begun for each in columns.transfers()] == [each.begun for each in began]
    assert [each.event for each in columns.transfers()] == [each.event if each.event <= events else 0 for each in began]
    assert found[:1] == [PIPE]


def test_nothing_is_read_of_a_recording_without_transfers(tmp_path: Path) -> None:
    with open_recording(Example().write_live(tmp_path, "one")) as recording:
        assert not has_transfers(recording)
        assert read_transfers(recording)[1].count == 0


def test_a_live_directory_and_a_sealed_one_have_the_section(tmp_path: Path) -> None:
    section = pack_transfers([PIPE], [sent()])
    log = LogBuilder()
    log.crossing(0, 1.0)
    example = Example(header=header_json(group="ab", process=1), log=log.to_bytes())
    live = example.write_live(tmp_path, "one")
    (live / "transfers").write_bytes(section + b"\0" * 1000)  # pages are allocated ahead
    with open_recording(live) as recording:
        assert list(read_transfers(recording)[1].transfers()) == [sent()]
        recording.check()
        assert recording.damage == ()
    sealed = _sealed(live, tmp_path / "one.rdbg")
    with open_recording(sealed) as recording:
        assert recording.section("transfers") == section
        assert list(read_transfers(recording)[1].transfers()) == [sent()]
        recording.check()
        assert recording.damage == ()
    assert not live.exists()


def _sealed(live: Path, target: Path) -> Path:
    from replaydbg.log.container import seal
    from tests.harness.build import end_json

    seal(live, target, end_json())
    return target


def test_a_file_without_a_header_yet_has_no_transfers(tmp_path: Path) -> None:
    live = Example().write_live(tmp_path, "one")
    (live / "transfers").write_bytes(b"\0" * 65536)  # the process was killed right when it had made it
    with open_recording(live) as recording:
        assert read_transfers(recording)[1].count == 0


@pytest.mark.parametrize("end", range(HEADER + SLOT, HEADER + 4 * SLOT + 1, 7))
def test_a_file_that_has_grown_since_it_was_opened_is_read_as_far_as_it_was(end: int, tmp_path: Path) -> None:
    log = LogBuilder()
    for _ in range(9):
        log.crossing(0, 1.0)
    live = Example(log=log.to_bytes()).write_live(tmp_path, "one")
    section = pack_transfers([PIPE], [sent(), sent(2, 1, 2)])
    (live / "transfers").write_bytes(section[:end])
    with open_recording(live) as recording:
        ends, columns = read_transfers(recording)
        assert (len(ends), columns.count) == (end >= HEADER + 2 * SLOT, max((end - HEADER) // SLOT - 2, 0))


def test_a_transfer_whose_event_was_never_committed_is_open() -> None:
    receive = sent(6, 2, 9, way="receive")
    _, columns = written([PIPE], [sent(), sent(5, 1, 2), receive], events=4)

    open_send, open_receive = list(columns.transfers())[1:]
    assert (open_send.event, open_send.ticket, open_send.length, open_send.digest) == (0, 2, 3, digest_of(b"abc"))
    assert (open_receive.event, open_receive.ticket, open_receive.length, open_receive.digest) == (0, 0, 0, 0)


def test_a_transfer_that_is_just_completed_is_open() -> None:
    # Its length is written before its event.
    _, columns = written([PIPE], [sent(0, 3, 1, length=55), sent(0, 3, 7, length=55, way="receive")])

    assert [(each.event, each.length, each.digest) for each in columns.transfers()] == [(0, 0, 0), (0, 0, 0)]
    assert [each.ticket for each in columns.transfers()] == [1, 0]


def test_a_call_that_moved_nothing_is_left_out() -> None:
    _, columns = written([PIPE], [sent(), sent(2, 1, 2, endpoint=0), sent(3, 2, 3)])

    assert list(columns.transfers()) == [sent(), sent(3, 2, 3)]


def test_an_endpoint_can_be_defined_again() -> None:
    known = UDP._replace(number=1, own="127.0.0.1:99", peer="127.0.0.1:5")
    found, _ = written([UDP._replace(number=1, own="0.0.0.0:0"), known], [sent()])

    assert found == [known]


def _changed(section: bytes, offset: int, data: bytes) -> bytes:
    return section[:offset] + data + section[offset + len(data) :]


_TWO = pack_transfers([PIPE], [sent(), sent(2, 1, 2)])
_FIRST = HEADER + 2 * SLOT  # the definition takes two slots
_HOSTILE = {
    "header": (b"x" * 200, "has no header"),
    "format": (_changed(_TWO, 8, b"\2"), "has format 2, which this version does not know"),
    "cut": (_TWO[:-1], "is cut off: 255 of 256 bytes are there"),
    "middle": (_changed(_TWO, 16, struct.pack("<Q", len(_TWO) - 1)), "ends in the middle of a transfer"),
    "endpoint": (_changed(_TWO, _FIRST + 40, b"\2"), "refers to endpoint 2, which it does not define"),
    "address": (_changed(_TWO, _FIRST + 44, b"\1"), "refers to address 1, which it does not define"),
    "flags": (_changed(_TWO, _FIRST + 47, b"\x81"), "has a transfer of an unknown kind"),
    "digest": (_changed(_TWO, _FIRST + 31, b"\xff"), "has a transfer with an impossible length or digest"),
    "length": (_changed(_TWO, _FIRST + 39, b"\xff"), "has a transfer with an impossible length or digest"),
    "order": (_changed(_TWO, _FIRST + 8, b"\2" + b"\0" * 7), "has transfers out of their order"),
    "before": (_changed(_TWO, _FIRST, struct.pack("<QQ", 1, 1)), "has a transfer that ended before it began"),
    "after": (pack_transfers([PIPE], [sent(50, 40)]), "has a transfer after event 40, and the log has only 9"),
    "ticket": (pack_transfers([PIPE], [sent(ticket=0)]), "has a transfer without a ticket"),
    "kind": (_changed(_TWO, HEADER, b"\x77"), "has an endpoint of an unknown kind (119)"),
    "slots": (_changed(_TWO, HEADER + 2, b"\0"), "has a definition that is cut off"),
    "many slots": (_changed(_TWO, HEADER + 2, b"\x77"), "has a definition that is cut off"),
    "text": (_changed(_TWO, HEADER + 16, b"\xff"), "has a definition that is cut off"),
    "name": (_changed(_TWO, HEADER + SLOT, b"\x1b"), "has an invalid name of endpoint 1"),
    "zero": (_changed(_TWO, HEADER + SLOT, b"\0"), "has a definition with an invalid text"),
    "number": (_changed(_TWO, HEADER + 4, b"\5"), "has an endpoint 5 out of its order"),
    "kinds": (pack_transfers([PIPE, PIPE._replace(kind="fifo")], []), "has two kinds of endpoint 1"),
}


@pytest.mark.parametrize("section,reason", _HOSTILE.values(), ids=_HOSTILE.keys())
def test_a_hostile_section_is_damage_with_a_sentence(section: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(Corrupt) as error:
        read_transfers(Made(section))
    assert error.value.reason == f"its section 'transfers' {reason}"

    log = LogBuilder()
    for _ in range(9):
        log.crossing(0, 1.0)
    live = Example(log=log.to_bytes()).write_live(tmp_path, "one")
    (live / "transfers").write_bytes(section)
    # Without a header it is not sealed.
    path = live if reason == "has no header" else _sealed(live, tmp_path / "one.rdbg")
    with open_recording(path) as recording:
        recording.check()
        assert recording.damage == (f"Its section 'transfers' {reason}.",)


@given(st.binary(max_size=400), st.integers(0, 3))
def test_any_bytes_are_read_or_refused(data: bytes, events: int) -> None:
    header = struct.pack("<8sIIQ40x", b"RDBGXFR\0", 1, 0, HEADER + len(data) // SLOT * SLOT)
    for section in (header + data, data):
        try:
            ends, columns = read_transfers(Made(section, events))
        except Corrupt:
            continue
        assert all(1 <= each.endpoint <= len(ends) for each in columns.transfers())


def test_a_claim_beyond_the_stored_bytes_is_refused() -> None:
    made = Made(pack_transfers([PIPE], [sent()]))
    made.size = lambda name: 1 << 33  # type: ignore[method-assign]

    with pytest.raises(Corrupt, match="is too long"):
        read_transfers(made)


# ---- the digest ----


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_the_digest_of_a_stream_follows_from_its_pieces(first: bytes, second: bytes) -> None:
    joined = joined_digest(digest_of(first), digest_of(second), len(second))

    assert joined == digest_of(first + second)
    assert 0 <= joined < DIGEST_MODULUS


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_the_core_has_the_same_digest(first: bytes, second: bytes) -> None:
    before = _core.stream_digest(0, first)

    assert before == digest_of(first)
    assert _core.stream_digest(before, second) == digest_of(first + second)


def test_the_core_has_the_same_digest_of_much() -> None:
    data = b"\xff" * 1000 + bytes(range(256)) * 40

    assert _core.stream_digest(0, data) == digest_of(data)


def test_zero_bytes_and_order_count_in_the_digest() -> None:
    different = [b"", b"\0", b"\0\0", b"\0\1", b"\1\0", b"\1"]

    assert len({digest_of(each) for each in different}) == len(different)


def test_a_million_transfers_take_little_memory_each() -> None:
    data = pack_transfers([PIPE], [sent(index + 1, index, index + 1) for index in range(2000)])
    _, columns = read_transfers(Made(data, 2000))

    taken = sum(len(each) * each.itemsize for each in (columns.event, columns.begun, columns.ticket, columns.digest))
    assert taken == 2000 * 32
    assert module.SLOT == 48
