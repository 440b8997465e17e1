"""Build the recordings of a group by hand, through the format alone: what its processes sent and received."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replaydbg.events.transfers import Endpoint, Transfer, digest_of
from replaydbg.log.container import seal
from replaydbg.log.group import Group, GroupProcess, write_group
from tests.harness.build import Example, LogBuilder, end_json, header_json
from tests.harness.transfers import pack_transfers

SOURCE = b"import os\n" + b"".join(b"step(%d)\n" % number for number in range(2, 60))
"""The program of all processes: event N is at its line N + 1."""

IDENTITY = "ab" * 16


def sent(data: bytes, event: int, ticket: int, *, endpoint: int = 1, **more: Any) -> Transfer:
    """Return a send."""
    begun = more.pop("begun", event - 1)
    return Transfer(event, begun, ticket, endpoint, "send", len(data), digest_of(data), "", False, False)._replace(
        **more
    )


def received(data: bytes, event: int, ticket: int, *, endpoint: int = 1, **more: Any) -> Transfer:
    """Return a receive."""
    return sent(data, event, ticket, endpoint=endpoint, **more)._replace(way="receive")


def write_member(
    directory: Path, number: int, endpoints: Sequence[Endpoint], transfers: Sequence[Transfer], **header: Any
) -> Path:
    """Write the recording of a process, which has as many events as its last transfer needs."""
    log = LogBuilder()
    for event in range(1, max((each.event for each in transfers), default=0) + 3):
        log.crossing(0, 1.0, line=event + 1)
    key = hashlib.sha256(SOURCE).hexdigest()[:16]
    made = Example(
        header=header_json(
            **{"group": IDENTITY, "process": number, "name": f"run-1/{number}", "cwd": "/src", **header}
        ),
        end=end_json(events=log.crossings, sources={"/src/prog.py": key}),
        log=log.to_bytes(),
        sources={key: SOURCE},
    )
    live = made.write_live(directory, str(number))
    (live / "transfers").write_bytes(pack_transfers(list(endpoints), list(transfers)))
    target = directory / f"{number}.rdbg"
    seal(live, target, made.end)
    return target


def write_run(
    directory: Path, members: dict[int, tuple[Sequence[Endpoint], Sequence[Transfer]]], **headers: dict[str, Any]
) -> Path:
    """Write a group `run-1` with these processes; `headers` are changes by `p2` and so on."""
    group = directory / "run-1.rdbgs"
    group.mkdir(parents=True)
    rows = []
    for number, (endpoints, transfers) in members.items():
        write_member(group, number, endpoints, transfers, **headers.get(f"p{number}", {}))
        how, parent = ("program", 0) if number == 1 else ("fork", 1)
        rows.append(GroupProcess(number, 100 + number, parent, 0, how, None, True, 0, "itself", f"{number}.rdbg", ""))
    write_group(group, Group(IDENTITY, rows, 0, True))
    return group
