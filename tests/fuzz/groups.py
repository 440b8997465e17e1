"""A group of processes as an input: what its files say of them, in one document that is mutated as a whole."""

import json
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

from replaydbg.errors import ReplaydbgError
from replaydbg.log import group
from replaydbg.log.container import seal
from replaydbg.log.reader import open_recording
from tests.fuzz import chunks
from tests.fuzz.canary import looking_away
from tests.fuzz.space import scratch
from tests.harness.build import Example, end_json, example, header_json

NAME = "run-9"
_IDENTITY = "0f" * 16


def seed() -> bytes:
    """Return `group.json`, and `branch.json` of each child: 3 is the child of 2, which is the child of 1."""
    made = example(2)
    size = {"log": len(made.log), "world": len(made.world), "content": len(made.content)}
    row = {"pid": 70, "how": "fork", "argv": ["prog.py"], "ended": True, "status": 0, "status_from": "parent"}
    rows = [
        {**row, "number": number, "parent": number - 1, "event": 2, "recording": f"{number}.rdbg", "why_not": ""}
        for number in (1, 2, 3)
    ]
    facts = {
        "format": 1,
        "group": _IDENTITY,
        "complete": False,
        "more": 0,
        "processes": rows,
        "cuts": [{"ticket": 8, "time": 1, "process": 1, "position": 2, "name": "x"}],
    }
    branches = [{"process": number, "parent": number - 1, "event": 2, **size} for number in (2, 3)]
    return json.dumps({"group": facts, "branches": branches}).encode()


def lay_out(data: bytes, rng: Random) -> Path:
    """Write the directory of a group with such a document; return its path."""
    store = scratch(os.getpid()) / "replaydbg" / "recordings"
    directory = store / f"{NAME}{group.GROUP}"
    with looking_away():
        if not directory.exists():
            directory.mkdir(parents=True)
            _write_recordings(directory)
        group_json, branches = _parts(data)
        (directory / group.FACTS).write_bytes(group_json)
        for number, branch in zip((2, 3), branches, strict=False):
            (directory / f"{number}.rdbg-live" / "branch.json").write_bytes(branch)
        _write_page(directory, rng)
    return directory


def remove() -> None:
    """Remove it."""
    with looking_away():
        shutil.rmtree(scratch(os.getpid()) / "replaydbg" / "recordings" / f"{NAME}{group.GROUP}", ignore_errors=True)


def read(directory: Path) -> list[str]:
    """Read the group and its recordings; return messages."""
    messages = []
    try:
        messages.append(str(len(group.read_group(directory).processes)))
    except ReplaydbgError as error:
        messages.append(str(error))
    for number in (2, 3):
        try:
            with open_recording(directory / f"{number}.rdbg-live") as opened:
                for name in opened.sections:
                    for _ in opened.pieces(name):
                        pass
                events = sum(1 for _ in opened.events())
                messages += [str(events), *opened.problems]
        except ReplaydbgError as error:
            messages.append(str(error))
    return messages


def _parts(data: bytes) -> tuple[bytes, list[bytes]]:
    try:
        document: Any = json.loads(data)
        facts, branches = document["group"], document["branches"]
        return json.dumps(facts).encode(), [json.dumps(each).encode() for each in branches]
    except (ValueError, LookupError, TypeError, RecursionError):
        return data, [data, data]


def _write_recordings(directory: Path) -> None:
    header = header_json(name=f"{NAME}/1", group=_IDENTITY, process=1)
    made = example(2)
    for number in (1, 2, 3):
        Example(header=header, log=made.log, content=made.content).write_live(directory, str(number))
    seal(directory / "1.rdbg-live", directory / "1.rdbg", end_json(events=12))


def _write_page(directory: Path, rng: Random) -> None:
    """A page is read while processes run; in half of the inputs, a mutated one."""
    page = directory / group.PAGE
    page.unlink(missing_ok=True)
    if rng.randrange(2):
        group.new_page(page, 1 << 30)
        page.write_bytes(chunks.mutated(page.read_bytes()[:512], rng) + bytes(1000 * 64))
