"""Order the release of a semaphore, an eventfd or a lock of a file before an acquisition by another process.

A release takes its ticket before the call, an acquisition after it: one with a later ticket cannot be what an
acquisition waited for. Where several can, all of them are edges, none of them certain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from replaydbg.distributed.edges import BareTransfer, HappensBefore, bare_transfers
from replaydbg.distributed.matching.columns import Member

SHARED = "shared"
"""How the peer of an endpoint begins whose lock several processes can have at a time."""
PART = " part"
"""How it ends if it is one of some bytes of the file: those of other bytes do not exclude it."""


def semaphore_edges(members: Iterable[Member]) -> Iterator[HappensBefore]:
    """Yield for each acquisition of a semaphore the releases before it by their tickets, by other processes.

    If at most one process can have it at a time, that is the last release, and it is certain.
    """
    for name, rows in _uses(members, "semaphore").items():
        if not name.startswith("/"):
            continue  # an address, which is another semaphore's in another process
        made_with = next((row.end.peer for row in rows if row.end.peer), "")
        yield from _edges(rows, "semaphore", is_certain=_is_in_turn(rows, made_with))


def eventfd_edges(members: Iterable[Member]) -> Iterator[HappensBefore]:
    """Yield for each read of an eventfd the writes before it by their tickets, by other processes.

    Never certain: one write is enough, and the kernel gives the number of an eventfd that was closed to another one.
    """
    for rows in _uses(members, "eventfd").values():
        yield from _edges(rows, "eventfd", is_certain=False)


def lock_edges(members: Sequence[Member]) -> Iterator[HappensBefore]:
    """Yield for each acquisition of a lock of a file what other processes had released before it by their tickets.

    One that is shared needs the releases of exclusive ones only. A process that ended with a lock had to end before.
    It is certain if all locks are exclusive, of the whole file and of one kind, and were released one by one.
    """
    last = {member.process: (member.events, max(member.transfers.ticket, default=0)) for member in members}
    for rows in lock_uses(members):
        kinds = {row.end.peer for row in rows}
        is_simple = len(kinds) == 1 and not any(each.startswith(SHARED) or each.endswith(PART) for each in kinds)
        is_certain = is_simple and _is_in_turn(rows, "1")
        yield from _edges(rows, "lock", is_certain=is_certain)
        yield from _edges_of_ends(rows, last)


def lock_uses(members: Iterable[Member]) -> Iterable[list[BareTransfer]]:
    """Return for each file what processes acquired and released of its locks, in the order of the tickets."""
    return _uses(members, "file-lock").values()


def may_be_at_once(one: BareTransfer, other: BareTransfer) -> bool:
    """Whether two locks of a file do not exclude each other. Those of different bytes are treated as one."""
    return is_flock(one) != is_flock(other) or (is_shared_lock(one) and is_shared_lock(other))


def is_flock(row: BareTransfer) -> bool:
    """Whether it is a lock by `flock()`: the others do not exclude it."""
    return row.end.peer.split(" ")[1:2] == ["flock"]


def is_shared_lock(row: BareTransfer) -> bool:
    """Whether several processes can have the lock at a time."""
    return row.end.peer.startswith(SHARED)


def is_part(*rows: BareTransfer) -> bool:
    """Whether one of these locks is a lock of some bytes of the file only."""
    return any(row.end.peer.endswith(PART) for row in rows)


def _uses(members: Iterable[Member], kind: str) -> dict[str, list[BareTransfer]]:
    """Return the transfers by the name of what they are of, in the order of their tickets.

    An acquisition that never ended got nothing; a release that did not may have been seen.
    """
    uses: defaultdict[str, list[BareTransfer]] = defaultdict(list)
    for row in bare_transfers(members, kind):
        if row.event or not row.is_receive:
            uses[row.end.own].append(row)
    for rows in uses.values():
        rows.sort(key=lambda row: row.ticket)
    return uses


def _edges(rows: Sequence[BareTransfer], kind: str, *, is_certain: bool) -> Iterator[HappensBefore]:
    """Yield for each acquisition the last release before it: of each other process, or of all if that is certain."""
    released: dict[int, BareTransfer] = {}
    exclusive: dict[int, BareTransfer] = {}
    last: BareTransfer | None = None
    yielded: dict[tuple[int, int], int] = {}
    for row in rows:
        if not row.is_receive:
            last = row
            _keep_latest(released, row)
            if not is_shared_lock(row):
                _keep_latest(exclusive, row)
            continue
        candidates = [last] if is_certain and last is not None else []
        if not is_certain:
            candidates = list((exclusive if is_shared_lock(row) else released).values())
        for each in candidates:
            pair = each.process, row.process
            # Later events of the process need what its earlier ones do.
            if each.process != row.process and (is_certain or yielded.get(pair, -1) < each.begun):
                yielded[pair] = each.begun
                yield HappensBefore(each.process, each.begun + 1, row.process, row.event, is_certain, kind, each.begun)


def _keep_latest(found: dict[int, BareTransfer], row: BareTransfer) -> None:
    known = found.get(row.process)
    if known is None or known.begun < row.begun:
        found[row.process] = row


def _edges_of_ends(rows: Sequence[BareTransfer], last: dict[int, tuple[int, int]]) -> Iterator[HappensBefore]:
    """Yield the ends of processes that had a lock then, each before the next acquisition by each other process."""
    had = {row.process: row for row in rows}
    for process, row in had.items():
        event, ticket = last[process]
        if not row.is_receive:
            continue
        met: set[int] = set()
        for each in rows:
            is_later = each.is_receive and each.process != process and each.ticket > ticket
            if is_later and each.process not in met and not (is_shared_lock(each) and is_shared_lock(row)):
                met.add(each.process)
                yield HappensBefore(process, event, each.process, each.event, False, "lock", event)


def _is_in_turn(rows: Sequence[BareTransfer], made_with: str) -> bool:
    """Whether acquisitions and releases came in turn, as they can with a lock, or with one that begins released."""
    first = {"0": False, "1": True}.get(made_with)
    return first is not None and all(row.is_receive == (first ^ bool(at % 2)) for at, row in enumerate(rows))
