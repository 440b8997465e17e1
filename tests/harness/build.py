"""Build small recordings by hand, through the format alone, so that reading can be tested without recording.

`LogBuilder` writes a log record by record and gives ids to what it defines; `Example` holds all parts of a recording
and writes them as a live directory or as a sealed file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replaydbg.events.stops import StopReason
from replaydbg.events.values import ExceptionValue, TypeName, Value
from replaydbg.log.coding import encode as codec
from replaydbg.log.container import Writer, seal, split
from replaydbg.log.entries.logfile import LOG_HEADER, LogHeader, pack_log_header
from replaydbg.log.group import Group, GroupProcess, write_group
from replaydbg.log.reader import open_recording

GATES = [
    {"name": "time.time", "shape": 0, "kind": "regular"},
    {"name": "os.urandom", "shape": 1, "kind": "regular"},
    {"name": "os.write", "shape": 3, "kind": "regular"},
    {"name": "_io.FileIO.readinto", "shape": 5, "kind": "irregular"},
    {"name": "os.stat", "shape": 1, "kind": "regular"},
]


def header_json(**changes: Any) -> dict[str, Any]:
    """Return a header like that of a recorder."""
    header: dict[str, Any] = {
        "format": codec.FORMAT,
        "tool": "0.1.0",
        "created": "2026-01-02T03:04:05+00:00",
        "name": "run-1",
        "kind": "script",
        "target": "prog.py",
        "argv": ["prog.py", "--fast"],
        "orig_argv": ["python3", "prog.py", "--fast"],
        "cwd": "/home/user/project",
        "env": {"LANG": "C.UTF-8", "ODD": "\udcff"},
        "hash_seed": 42,
        "python": {
            "version": "3.11.7",
            "hexversion": 0x030B07F0,
            "executable": "/usr/bin/python3",
            "prefix": "/usr",
            "cache_tag": "cpython-311",
            "soabi": "cpython-311-x86_64-linux-gnu",
            "flags": ["-u"],
        },
        "platform": "Linux-6.1-x86_64",
        "stdio": ["tty", "pipe", "file"],
        "signals": {"2": "ignored"},
        "fds": [5],
        "gates": [dict(each) for each in GATES],
        "gates_digest": "00" * 16,
    }
    return header | changes


def end_json(**changes: Any) -> dict[str, Any]:
    """Return an end like that of a recorder."""
    end: dict[str, Any] = {
        "status": 0,
        "seconds": 1.5,
        "cpu_seconds": 0.5,
        "reason": None,
        "events": 0,
        "notes": [{"kind": "thread", "text": "a thread was started", "count": 2}],
        "packages": {"rich": "13.7.0"},
        "sources": {},
        "ok": True,
    }
    return end | changes


class LogBuilder:
    """Writes one log; every method adds a record, and definitions are written automatically before their first use."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.crossings = 0
        self._ids: dict[tuple[Any, ...], int] = {}
        self._counts: dict[int, int] = {}

    def crossing(
        self,
        gate: int,
        outcome: Value,
        *,
        line: int = 3,
        arguments: tuple[Value, ...] = (),
        digest: bytes = b"\1\2\3\4",
        filled: bytes = b"",
        has_frame: bool = True,
    ) -> None:
        """Add a crossing of the gate with index `gate` in GATES; an ExceptionValue as outcome is raised."""
        shape = int(GATES[gate]["shape"])  # type: ignore[call-overload]
        code = self._define(0, ("code",), codec.text("/src/prog.py") + codec.text("main") + codec.varint(1))
        place = [gate + 1, code if has_frame else 0, 2 * line, line if has_frame else 0, shape]
        site = self._define(1, ("site", *place), b"".join(map(codec.varint, place)))
        payload = b""
        if shape & 1:
            value = codec.encode_value(arguments, self._type)
            payload += codec.varint(self._define(2, ("args", value), value))
        if shape & 2:
            payload += digest
        payload += codec.encode_value(outcome, self._type)
        if shape & 4:
            payload += codec.encode_value(filled)
        self.records.append(codec.varint(site << 2 | isinstance(outcome, ExceptionValue)) + payload)
        self.crossings += 1

    def control(self, rest: int, payload: bytes) -> None:
        """Add a control record."""
        self.records.append(codec.varint(rest << 2 | 2) + payload)

    def answer(self, operation: str, path: str, asked: int, outcome: Value) -> None:
        """Add an answer of the import world."""
        value = codec.encode_value(outcome, self._type)
        self.control(16, codec.text(operation) + codec.text(path) + codec.varint(asked) + value)

    def raw(self, record: bytes) -> None:
        """Add bytes unchanged."""
        self.records.append(record)

    def to_bytes(self, *, stopped: StopReason = StopReason.NOT_STOPPED, committed: int | None = None) -> bytes:
        """Return the whole log file."""
        body = b"".join(self.records)
        end = LOG_HEADER + len(body) if committed is None else committed
        return pack_log_header(LogHeader(codec.FORMAT, stopped, end, self.crossings, 10**18)) + body

    def _type(self, name: TypeName) -> int:
        return self._define(3, (name,), codec.text(name.module) + codec.text(name.qualname))

    def _define(self, rest: int, key: tuple[Any, ...], payload: bytes) -> int:
        if key not in self._ids:
            self._counts[rest] = self._counts.get(rest, 0) + 1
            self._ids[key] = self._counts[rest]
            self.records.append(codec.varint(rest << 2 | 3) + payload)
        return self._ids[key]


@dataclass
class Example:
    """All parts of a recording; change the part under test, then write it."""

    header: dict[str, Any] = field(default_factory=header_json)
    end: dict[str, Any] = field(default_factory=end_json)
    log: bytes = b""
    world: bytes = field(default_factory=lambda: LogBuilder().to_bytes())
    content: bytes = b""
    sources: dict[str, bytes] = field(default_factory=dict)

    def write_live(self, directory: Path, name: str = "run-1") -> Path:
        """Write it as a live directory and return the path."""
        live = directory / f"{name}.rdbg-live"
        live.mkdir()
        (live / "header.json").write_text(json.dumps(self.header))
        (live / "boot").write_bytes(codec.encode_value({"mode": "record"}))
        # A recorder allocates pages ahead.
        (live / "log").write_bytes(self.log + bytes(1000))
        (live / "world").write_bytes(self.world + bytes(1000))
        if self.content:
            (live / "content").write_bytes(self.content)
        for key, data in self.sources.items():
            (live / "source").mkdir(exist_ok=True)
            (live / "source" / key).write_bytes(data)
        return live

    def write(self, directory: Path, name: str = "run-1") -> Path:
        """Write it as a sealed file and return the path."""
        target = directory / f"{name}.rdbg"
        seal(self.write_live(directory, name), target, self.end)
        return target


def example(rounds: int = 3) -> Example:
    """Return a recording with a bit of everything; each round adds six events."""
    log = LogBuilder()
    for number in range(rounds):
        log.control(2, codec.varint(1000 * number))
        log.crossing(0, 1.5 + number, line=3)
        log.crossing(1, bytes(range(8)), line=4, arguments=(8,))
        log.control(0, codec.varint(14))
        log.crossing(0, 2.5, line=9, has_frame=False)
        log.crossing(2, 5, line=5, arguments=(1, {"end": "\n"}), digest=number.to_bytes(4, "little"))
        log.crossing(3, 4, line=6, filled=b"data")
        missing = ExceptionValue(TypeName("builtins", "FileNotFoundError"), (2, "gone"), (2, "gone", "x", None))
        log.crossing(4, missing, line=7, arguments=("x",))
    log.control(4, codec.encode_value(("thread", "a thread was started")))
    log.control(3, codec.varint(0))
    world = LogBuilder()
    world.answer("getcwd", "", 1, "/home/user/project")
    world.answer("stat", "/src/missing.py", 1, ExceptionValue(TypeName("builtins", "FileNotFoundError"), (2,), None))
    return Example(
        end=end_json(events=log.crossings),
        log=log.to_bytes(),
        world=world.to_bytes(),
        content=b"content" * 100,
        sources={"0123456789abcdef": b"print('hello')\n"},
    )


def with_header(
    source: Path, target: Path, change: Callable[[dict[str, Any]], object], *, name: str = "header"
) -> Path:
    """Write the sealed recording `source` to `target` with a header modified by `change`; return the path.

    `name`: another section that is JSON, such as `end`. Every checksum is correct.
    """
    with open_recording(source) as recording, target.open("wb") as file:
        writer = Writer(file)
        for section in recording.sections:
            if section == "index":
                continue
            data = recording.section(section) if recording.size(section) else b""
            if section == name:
                value = json.loads(data)
                change(value)
                data = json.dumps(value).encode()
            writer.section(section, split(data))
        writer.finish(syncs=False)
    return target


def write_group_of(store: Path, name: str, count: int, **header: Any) -> Path:
    """Write a group of processes."""
    directory = store / f"{name}.rdbgs"
    directory.mkdir(parents=True)
    rows = []
    for number in range(1, count + 1):
        made = example()
        made.header = header_json(group="ab", process=number, name=f"{name}/{number}", **header)
        made.write(directory, str(number))
        rows.append(GroupProcess(number, 100, number - 1, 5, "fork", [], True, 0, "parent", f"{number}.rdbg", ""))
    write_group(directory, Group("ab", rows, 0, True))
    return directory
