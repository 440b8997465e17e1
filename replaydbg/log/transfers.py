"""Read and write the section `transfers`, section 4.6 of format.md: what a process of a group sent and received.

Read as columns: a million transfers take a few tenths of a second and 50 bytes each.
"""

from __future__ import annotations

import struct
import sys
from array import array
from itertools import compress
from operator import ge, le

from replaydbg.classes import dataclass, replace
from replaydbg.errors import Corrupt
from replaydbg.events.transfers import DIGEST_MODULUS, KINDS, Endpoint, Transfer
from replaydbg.log.allowance import allowance
from replaydbg.log.entries.logfile import LOG_HEADER, TRANSFERS_HEADER, read_log_header, transfers_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol
else:
    Protocol = object

SECTION = "transfers"
TRANSFERS_FORMAT = 1
SLOT = 48
"""Bytes of a transfer. A definition takes several of these."""

# replaydbg/native/base/constants.h is written from these.
RECEIVES = 1
"""A receive; otherwise a send."""
PEEKS = 2
"""MSG_PEEK."""
URGENT = 4
"""MSG_OOB."""
PARTLY_KNOWN = 8
"""The call raised after it had moved bytes: the length is a lower bound. Had not ended: it reads until the end."""
TO_OUTPUT = 16
"""Through a descriptor of the program's standard output."""
TO_ERROR = 32
"""Through one of its standard error."""
PASSES = 64
"""Descriptors came or went with it (SCM_RIGHTS)."""
DEFINES = 128
"""Not a transfer: a definition of an endpoint or an address."""

ADDRESS = 0
"""The kind of a definition that is the address of a datagram; those of endpoints are 1 + the index in KINDS."""
PASSED = 255
"""The kind of one that is no definition: a descriptor of this endpoint came or went with the transfer of an event."""

_LIMIT = 1 << 30
"""The longest section that is read: 20 million transfers."""
MOST_DESCRIPTORS = 1 << 20
"""Numbers of descriptors are below: a recording can claim any number."""
_LONGEST = 1 << 48
"""The limit of a transfer's length."""
DEFINITION = struct.Struct("<BxHIQHHHHI19xB")
TRANSFER = struct.Struct("<QQQQQII")
SECTION_HEADER = struct.Struct("<8sIIQ40x")
_WORDS = SLOT // 8
assert DEFINITION.size == TRANSFER.size == SLOT
assert SECTION_HEADER.size == TRANSFERS_HEADER


class HasSections(Protocol):
    """The part of a recording, or of its sections, that is needed here."""

    def size(self, name: str) -> int:
        """Return the number of bytes of a section."""
        ...

    def stored(self, name: str) -> int:
        """Return how many bytes of the file it takes."""
        ...

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield its bytes."""
        ...


@dataclass(frozen=True, slots=True)
class TransferColumns:
    """The transfers of a recording in the order in which they began: an array for each field."""

    event: array[int]
    begun: array[int]
    ticket: array[int]
    digest: array[int]
    length: array[int]
    endpoint: array[int]
    address: array[int]
    """Indexes into `addresses`."""
    flags: bytes
    """Bits of the constants above."""
    addresses: list[str]
    """The first is empty."""
    passed: tuple[tuple[int, int], ...] = ()
    """Descriptors that came or went with a transfer: the number of its event, and the number of their endpoint."""
    interrupted: tuple[tuple[int, int], ...] = ()
    """Waits for a semaphore that raised: the number of the event, and of the semaphore's endpoint."""
    descriptors: tuple[tuple[int, int], ...] = ()
    """Transfers that had not ended, by a descriptor: the index of the transfer, and the descriptor."""

    @property
    def count(self) -> int:
        """Number of transfers."""
        return len(self.event)

    def transfer(self, index: int) -> Transfer:
        """Return one transfer; `index` counts from 0."""
        flags = self.flags[index]
        return Transfer(
            self.event[index],
            self.begun[index],
            self.ticket[index],
            self.endpoint[index],
            "receive" if flags & RECEIVES else "send",
            self.length[index],
            self.digest[index],
            self.addresses[self.address[index]],
            bool(flags & PEEKS),
            bool(flags & URGENT),
            bool(flags & PARTLY_KNOWN),
            1 if flags & TO_OUTPUT else 2 if flags & TO_ERROR else 0,
            bool(flags & PASSES),
        )

    def transfers(self) -> Iterator[Transfer]:
        """Yield all of them."""
        return map(self.transfer, range(self.count))


def has_transfers(sections: HasSections) -> bool:
    """Whether a recording has the section: that of a process of a group that used a channel."""
    return sections.size(SECTION) > 0


def read_transfers(sections: HasSections) -> tuple[list[Endpoint], TransferColumns]:
    """Return the endpoints and transfers of a recording or of its sections; nothing if it has none. Raises Corrupt."""
    try:
        return _read(sections)
    except Corrupt as error:
        raise Corrupt(str(getattr(sections, "path", error.path)), error.reason) from None


def _read(sections: HasSections) -> tuple[list[Endpoint], TransferColumns]:
    data = _section(sections)
    # After the section: of a program that still runs, everything that it refers to is in the log by now.
    header = read_log_header(next(iter(sections.pieces("log")), b"")[:LOG_HEADER])
    crossings = header.crossings if header is not None else 0
    endpoints, addresses, passed, slots = _definitions(data)
    columns = _columns(slots, addresses, tuple(each for each in passed if 1 <= each[0] <= crossings))
    columns = _without_void(columns, len(endpoints), crossings)
    _check(columns, len(endpoints))
    open_ones = _open_ones(columns.event, crossings) if columns.count else []
    known = [
        (row, columns.digest[row] - 1)
        for row in open_ones
        if not columns.length[row] and 0 < columns.digest[row] <= MOST_DESCRIPTORS
    ]
    columns = replace(columns, descriptors=tuple(known))
    if columns.length.count(0):
        for row, length in enumerate(columns.length):
            if not length:
                columns.digest[row] = 0
    _settle_open(columns, crossings)
    return endpoints, columns


def _corrupt(reason: str) -> Corrupt:
    return Corrupt("the recording", f"its section {SECTION!r} {reason}")


def _section(sections: HasSections) -> bytes:
    size = sections.size(SECTION)
    if not size:
        return b""
    if size > min(_LIMIT, allowance(sections.stored(SECTION))):
        raise _corrupt(f"is too long ({size:,} bytes)")
    data = b"".join(sections.pieces(SECTION))
    if len(data) < size:
        raise _corrupt("is damaged")
    end = transfers_end(data)
    if not end and not any(data[:TRANSFERS_HEADER]):
        return b""  # the process was killed when it had just been made
    if not end:
        raise _corrupt("has no header")
    number = SECTION_HEADER.unpack_from(data)[1]
    if number != TRANSFERS_FORMAT:
        raise _corrupt(f"has format {number}, which this version does not know")
    if end > len(data) and getattr(sections, "is_live", False):
        end = _end_of_whole(data)  # it has grown since it was opened
    if end > len(data):
        raise _corrupt(f"is cut off: {len(data):,} of {end:,} bytes are there")
    if (end - TRANSFERS_HEADER) % SLOT:
        raise _corrupt("ends in the middle of a transfer")
    return data[TRANSFERS_HEADER:end]


def _end_of_whole(data: bytes) -> int:
    """Return where the last slot ends that is there, with all slots of its definition."""
    count = (len(data) - TRANSFERS_HEADER) // SLOT
    marks = data[TRANSFERS_HEADER + SLOT - 1 :: SLOT]
    at = 0
    while (at := marks.find(DEFINES, at)) >= 0:
        slots = DEFINITION.unpack_from(data, TRANSFERS_HEADER + at * SLOT)[1]
        if at + slots > count:
            return TRANSFERS_HEADER + at * SLOT
        at += max(slots, 1)
    return TRANSFERS_HEADER + count * SLOT


def _definitions(data: bytes) -> tuple[list[Endpoint], list[str], list[tuple[int, int]], bytes]:
    """Return the endpoints, the addresses, the descriptors that were passed, and the transfers alone."""
    marks = data[SLOT - 1 :: SLOT]
    endpoints: list[Endpoint] = []
    addresses = [""]
    passed: list[tuple[int, int]] = []
    runs = []
    begin = 0
    while (at := marks.find(DEFINES, begin)) >= 0:
        runs.append(data[begin * SLOT : at * SLOT])
        begin = at + _define(data, at, endpoints, addresses, passed)
    runs.append(data[begin * SLOT :])
    return endpoints, addresses, passed, b"".join(runs)


def _define(
    data: bytes, at: int, endpoints: list[Endpoint], addresses: list[str], passed: list[tuple[int, int]]
) -> int:
    """Read the definition in slot `at`; return how many slots it takes."""
    kind, slots, number, cookie, *lengths, peer_pid, _ = DEFINITION.unpack_from(data, at * SLOT)
    text = data[(at + 1) * SLOT : (at + slots) * SLOT]
    if not slots or len(text) < (slots - 1) * SLOT or sum(lengths) > len(text):
        raise _corrupt("has a definition that is cut off")
    texts = []
    for length in lengths:
        texts.append(text[:length].decode("utf-8", "surrogateescape"))
        text = text[length:]
    if any("\0" in each for each in texts):
        raise _corrupt("has a definition with an invalid text")
    if kind == ADDRESS:
        _define_address(addresses, number, texts[0])
    elif kind == PASSED:
        if not 1 <= number <= len(endpoints):
            raise _corrupt(f"has a descriptor of endpoint {number:,}, which it does not define")
        passed.append((cookie, number))
    else:
        own, peer, path, peer_path = texts
        _define_endpoint(endpoints, kind, Endpoint(number, "", own, peer, cookie, path, peer_path, peer_pid))
    return int(slots)


def _define_address(addresses: list[str], number: int, text: str) -> None:
    if number != len(addresses):
        raise _corrupt(f"has an address {number} out of its order")
    addresses.append(text)


def _define_endpoint(endpoints: list[Endpoint], kind: int, made: Endpoint) -> None:
    """Add an endpoint, or replace it where more of it became known."""
    number = made.number
    if kind > len(KINDS):
        raise _corrupt(f"has an endpoint of an unknown kind ({kind})")
    if not 1 <= number <= len(endpoints) + 1:
        raise _corrupt(f"has an endpoint {number} out of its order")
    if not all(each.isascii() and each.isprintable() for each in (made.own, made.peer)):
        raise _corrupt(f"has an invalid name of endpoint {number}")
    made = made._replace(kind=KINDS[kind - 1])
    if number <= len(endpoints) and endpoints[number - 1].kind != made.kind:
        raise _corrupt(f"has two kinds of endpoint {number}")
    endpoints[number - 1 : number] = [made]


def _array(kind: str, data: bytes | bytearray) -> array[int]:
    made: array[int] = array(kind)
    made.frombytes(data)
    if sys.byteorder == "big":
        made.byteswap()
    return made


def _columns(slots: bytes, addresses: list[str], passed: tuple[tuple[int, int], ...]) -> TransferColumns:
    words = _array("Q", slots)
    event, begun, ticket, digest, length = (words[place::_WORDS] for place in range(5))
    address = bytearray(4 * len(event))
    for place in range(3):
        address[place::4] = slots[44 + place :: SLOT]
    endpoint = _array("I", slots)[10::12]
    flags = slots[SLOT - 1 :: SLOT]
    return TransferColumns(
        event, begun, ticket, digest, length, endpoint, _array("I", address), flags, addresses, passed
    )


def _without_void(columns: TransferColumns, endpoints: int, crossings: int) -> TransferColumns:
    """Leave out calls that moved nothing, because they raised: they have no endpoint."""
    wanted = columns.endpoint
    if not wanted.count(0):
        return columns
    interrupted = tuple(
        (event, number)
        for event, number, endpoint in zip(columns.event, columns.digest, wanted, strict=True)
        if not endpoint and 0 < event <= crossings and 0 < number <= endpoints
    )

    def kept(column: array[int]) -> array[int]:
        return array(column.typecode, compress(column, wanted))

    return TransferColumns(
        kept(columns.event),
        kept(columns.begun),
        kept(columns.ticket),
        kept(columns.digest),
        kept(columns.length),
        kept(columns.endpoint),
        kept(columns.address),
        bytes(compress(columns.flags, wanted)),
        columns.addresses,
        columns.passed,
        interrupted,
    )


def _check(columns: TransferColumns, endpoints: int) -> None:
    if not columns.count:
        return
    if max(columns.endpoint) > endpoints:
        raise _corrupt(f"refers to endpoint {max(columns.endpoint):,}, which it does not define")
    if max(columns.address) >= len(columns.addresses):
        raise _corrupt(f"refers to address {max(columns.address):,}, which it does not define")
    if max(columns.flags) >= DEFINES:
        raise _corrupt("has a transfer of an unknown kind")
    if max(columns.digest) >= DIGEST_MODULUS or max(columns.length) >= _LONGEST:
        raise _corrupt("has a transfer with an impossible length or digest")
    if not all(map(le, columns.begun, columns.begun[1:])):
        raise _corrupt("has transfers out of their order")
    # An open transfer has event 0.
    if sum(map(ge, columns.begun, columns.event)) > columns.event.count(0):
        raise _corrupt("has a transfer that ended before it began")


def _settle_open(columns: TransferColumns, crossings: int) -> None:
    """Make open what had not ended: the program may have been killed between the transfer and its event."""
    if not columns.count:
        return
    if max(columns.begun) > crossings:
        raise _corrupt(f"has a transfer after event {max(columns.begun):,}, and the log has only {crossings:,}")
    for index in _open_ones(columns.event, crossings):
        receives = columns.flags[index] & RECEIVES
        if receives:
            columns.ticket[index] = 0
        if receives or not columns.event[index]:  # of a send that had ended they are known
            columns.length[index] = columns.digest[index] = 0
        columns.event[index] = 0
    if columns.ticket.count(0) > sum(
        1 for index in _open_ones(columns.event, crossings) if columns.flags[index] & RECEIVES
    ):
        raise _corrupt("has a transfer without a ticket")


def _open_ones(event: array[int], crossings: int) -> list[int]:
    if not event.count(0) and max(event) <= crossings:
        return []
    return [index for index, number in enumerate(event) if not 1 <= number <= crossings]
