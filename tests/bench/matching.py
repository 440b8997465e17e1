"""The cost of matching a million transfers of processes that were recorded together: made up, not recorded."""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from array import array
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from replaydbg.distributed.matching.columns import Member
from replaydbg.distributed.matching.matching import GroupMatching
from replaydbg.events.transfers import DIGEST_MODULUS, Endpoint, joined_digest
from replaydbg.log.transfers import RECEIVES, TransferColumns
from tests.bench.report import verdict
from tests.bench.workloads import environment
from tests.harness.process import run

NAME = "matching"
TRANSFERS = 1_000_000
# Seconds of CPU time, and megabytes.
TARGET, MEMORY = 2.0, 400


class MatchingFailed(Exception):
    """A process failed, so its time has no meaning."""


@dataclass(frozen=True, slots=True)
class MatchingCosts:
    """CPU seconds (medians) and the peak of the memory in megabytes, by the kind of the group."""

    transfers: int
    seconds: dict[str, float]
    megabytes: dict[str, float]

    def as_text(self) -> str:
        """Return it as lines for people."""
        lines = [f"matching {self.transfers:,} transfers (targets {TARGET:g} s CPU, {MEMORY} MB)"]
        for kind, seconds in self.seconds.items():
            memory = self.megabytes[kind]
            lines.append(
                f"  {kind:<12} {seconds:5.2f} s CPU ({verdict(seconds, TARGET)}), "
                f"{memory:.0f} MB ({verdict(memory, MEMORY)})"
            )
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_matching(runs: int, timeout: float, *, transfers: int = TRANSFERS) -> MatchingCosts:
    """Match each kind of group `runs` times, each in a process of its own. Raises MatchingFailed."""
    seconds, megabytes = {}, {}
    for kind in KINDS:
        found = [_measured(kind, transfers, timeout) for _ in range(max(runs, 1))]
        seconds[kind] = median(each["seconds"] for each in found)
        megabytes[kind] = max(each["megabytes"] for each in found)
    return MatchingCosts(transfers, seconds, megabytes)


def _measured(kind: str, transfers: int, timeout: float) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.matching", kind, str(transfers)]
    done = run(command, cwd=Path(__file__).parents[2], env=environment(), timeout=timeout)
    if done.status != 0:
        raise MatchingFailed(done.stderr.decode(errors="replace"))
    found: dict[str, float] = json.loads(done.stdout)
    return found


@dataclass
class _Process:
    """The transfers of one process."""

    endpoints: list[Endpoint]
    numbers: list[array[int]] = field(default_factory=lambda: [array("Q") for _ in range(5)])
    endpoint: array[int] = field(default_factory=lambda: array("I"))
    flags: bytearray = field(default_factory=bytearray)

    def add(self, ticket: int, digest: int, length: int, endpoint: int = 1, flags: int = 0) -> None:
        """Add a transfer, which is the next event."""
        event = len(self.flags) + 1
        for column, number in zip(self.numbers, (event, event - 1, ticket, digest, length), strict=True):
            column.append(number)
        self.endpoint.append(endpoint)
        self.flags.append(flags)

    def member(self, number: int) -> Member:
        """Return it as a member of a group."""
        addresses = array("I", bytes(4 * len(self.flags)))
        event, begun, ticket, digest, length = self.numbers
        flags = bytes(self.flags)
        columns = TransferColumns(event, begun, ticket, digest, length, self.endpoint, addresses, flags, [""])
        return Member(number, self.endpoints, columns)


def connections(count: int, chance: random.Random) -> list[_Process]:
    """Three processes, each connected with each other."""
    pairs = [(0, 1), (1, 2), (2, 0)]
    processes = [_Process([]) for _ in range(3)]
    for number, (one, other) in enumerate(pairs, 1):
        here, there = f"127.0.0.1:{1000 + number}", "127.0.0.1:80"
        processes[one].endpoints.append(Endpoint(len(processes[one].endpoints) + 1, "tcp", here, there, number, ""))
        ends = processes[other].endpoints
        ends.append(Endpoint(len(ends) + 1, "tcp", there, here, 10 + number, ""))
    numbers = {(one, there.own, there.peer): there.number for one in range(3) for there in processes[one].endpoints}
    for ticket in range(0, count, 2):
        one, other = pairs[ticket // 2 % 3]
        here, there = f"127.0.0.1:{1001 + ticket // 2 % 3}", "127.0.0.1:80"
        end, far = numbers[one, here, there], numbers[other, there, here]
        digest, length = chance.randrange(1, DIGEST_MODULUS), chance.randrange(1, 200)
        if ticket & 2:
            one, other, end, far = other, one, far, end
        processes[one].add(ticket + 1, digest, length, end)
        processes[other].add(ticket + 2, digest, length, far, RECEIVES)
    return processes


def queue(count: int, chance: random.Random) -> list[_Process]:
    """Four processes write into one pipe, one reads the four bytes of a length, then the rest."""
    processes = [_Process([Endpoint(1, "pipe", "1:2", "1:2", 0, "")]) for _ in range(5)]
    for ticket in range(0, count, 3):
        head, body, length = (chance.randrange(1, limit) for limit in (60, DIGEST_MODULUS, 200))
        processes[chance.randrange(4)].add(ticket + 1, joined_digest(head, body, length), 4 + length)
        processes[4].add(ticket + 2, head, 4, 1, RECEIVES)
        processes[4].add(ticket + 3, body, length, 1, RECEIVES)
    return processes


def datagrams(count: int, chance: random.Random) -> list[_Process]:
    """Datagrams of fifty different contents, of which one in six is lost."""
    ends = (("127.0.0.1:5", "127.0.0.1:9", 1), ("127.0.0.1:9", "127.0.0.1:5", 2))
    processes = [_Process([Endpoint(1, "udp", own, peer, cookie, "")]) for own, peer, cookie in ends]
    for ticket in range(0, count, 2):
        digest = chance.randrange(1, 50)
        processes[0].add(ticket + 1, digest, 8)
        if chance.randrange(6):
            processes[1].add(ticket + 2, digest, 8, 1, RECEIVES)
    return processes


KINDS = {"connections": connections, "queue": queue, "datagrams": datagrams}


def main(kind: str, count: int) -> None:
    """Match one group and print the cost."""
    members = [each.member(number) for number, each in enumerate(KINDS[kind](count, random.Random(1)), 1)]
    began = time.process_time()
    group = GroupMatching(members)
    matched = [group.match(each) for each in group.channels]
    seconds = time.process_time() - began
    assert all(each.contradiction is None and each.early is None and len(each.segments) for each in matched)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps({"seconds": seconds, "megabytes": peak}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
