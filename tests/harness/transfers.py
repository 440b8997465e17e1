"""Write the section of transfers, which the core writes in C: the inverse of `read_transfers`."""

from replaydbg.events.transfers import KINDS, Endpoint, Transfer
from replaydbg.log.entries.logfile import TRANSFERS_HEADER, TRANSFERS_MAGIC
from replaydbg.log.transfers import (
    ADDRESS,
    DEFINES,
    DEFINITION,
    PARTLY_KNOWN,
    PASSED,
    PASSES,
    PEEKS,
    RECEIVES,
    SECTION_HEADER,
    SLOT,
    TO_ERROR,
    TO_OUTPUT,
    TRANSFER,
    TRANSFERS_FORMAT,
    URGENT,
)


def pack_transfers(
    endpoints: list[Endpoint], transfers: list[Transfer], passed: tuple[tuple[int, int], ...] = ()
) -> bytes:
    """Return the section of these endpoints and transfers; `passed` is as in `TransferColumns`."""
    addresses: dict[str, int] = {"": 0}
    body = [
        _packed_definition(
            KINDS.index(each.kind) + 1,
            each.number,
            (each.own, each.peer, each.path, each.peer_path),
            each.cookie,
            each.peer_pid,
        )
        for each in endpoints
    ]
    for each in transfers:
        if each.address not in addresses:
            addresses[each.address] = len(addresses)
            body.append(_packed_definition(ADDRESS, addresses[each.address], (each.address, "", "", "")))
        flags = (
            RECEIVES * (each.way == "receive")
            | PEEKS * each.peeks
            | URGENT * each.urgent
            | PARTLY_KNOWN * each.is_partly_known
            | (0, TO_OUTPUT, TO_ERROR)[each.stream]
            | PASSES * each.passes
        )
        last = addresses[each.address] | flags << 24
        numbers = (each.event, each.begun, each.ticket, each.digest, each.length, each.endpoint)
        body.append(TRANSFER.pack(*numbers, last))
    body += [_packed_definition(PASSED, endpoint, ("", "", "", ""), event) for event, endpoint in passed]
    slots = b"".join(body)
    return SECTION_HEADER.pack(TRANSFERS_MAGIC, TRANSFERS_FORMAT, 0, TRANSFERS_HEADER + len(slots)) + slots


def _packed_definition(kind: int, number: int, strings: tuple[str, ...], cookie: int = 0, peer_pid: int = 0) -> bytes:
    texts = [each.encode("utf-8", "surrogateescape") for each in strings]
    text = b"".join(texts)
    slots = 1 + -(-len(text) // SLOT)
    head = DEFINITION.pack(kind, slots, number, cookie, *map(len, texts), peer_pid, DEFINES)
    return head + text.ljust((slots - 1) * SLOT, b"\0")
