"""The initial inputs of mutations: seeds, created at each start, and stored inputs."""

import hashlib
import json
import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import zstandard

from replaydbg.debugger.first_pass.run_index import MAGIC as INDEX_MAGIC
from replaydbg.events.transfers import Endpoint, Transfer
from replaydbg.events.values import ContentRef, ExceptionValue, StatResult, StructSequence, TypeName
from replaydbg.heap.builder import Node, build
from replaydbg.heap.snapshot import Snapshot, Taken
from replaydbg.heap.storage.snapshot_file import pack
from replaydbg.heap.storage.snapshot_series import SnapshotPacker
from replaydbg.log.coding import encode
from replaydbg.log.container import seal
from tests.fuzz import groups, packs
from tests.harness.build import Example, LogBuilder, example
from tests.harness.transfers import pack_transfers

RECORDING, LOG, WORLD, SNAPSHOT, NOTES, INDEX = "rdbg", "log", "world", "snap", "notes.json", "index"
GROUP, TRANSFERS, PACK = "group.json", "transfers", "tar"
KINDS = (RECORDING, LOG, WORLD, SNAPSHOT, NOTES, INDEX, GROUP, TRANSFERS, PACK)
PROGRAMS = Path(__file__).parents[2] / "fixtures" / "fuzz"


class Input(NamedTuple):
    """The input of a target."""

    kind: str
    """One of KINDS; the suffix of its file."""
    data: bytes

    @property
    def digest(self) -> str:
        """A name for it."""
        return hashlib.blake2b(self.data, digest_size=8).hexdigest()


def seeds() -> list[Input]:
    """Return the seeds that need no recording."""
    log = _log()
    sealed = _sealed(example(2))
    series = [snapshot(number) for number in range(1, 6)]
    packing = SnapshotPacker()
    files = [packing.pack(each) for each in series]
    with_heap = example(1)
    with_heap.end["snapshots"] = {
        "listed": [
            {"number": each.taken.number, "event": each.taken.event, "name": "n", "checks": []} for each in series
        ]
    }
    return [
        Input(RECORDING, sealed),
        Input(RECORDING, _sealed(with_heap, files)),
        Input(RECORDING, _sealed(replace(with_heap, log=log), [pack(each) for each in series])),
        Input(LOG, example(2).log),
        Input(LOG, log),
        Input(WORLD, _world()),
        *(Input(SNAPSHOT, pack(each)) for each in series[:2]),
        Input(SNAPSHOT, files[1]),
        Input(NOTES, json.dumps({"format": 1, "marks": [{"name": "a", "event": 1, "step": 2, "note": "x"}]}).encode()),
        Input(INDEX, index()),
        Input(GROUP, groups.seed()),
        Input(PACK, packs.seed()),
        Input(TRANSFERS, transfers()),
        Input(RECORDING, _sealed(example(2), transfers=transfers())),
    ]


def _sealed(made: Example, snapshots: list[bytes] | None = None, transfers: bytes = b"") -> bytes:
    with tempfile.TemporaryDirectory() as place:
        live = made.write_live(Path(place))
        if transfers:
            (live / "transfers").write_bytes(transfers)
        for number, data in enumerate(snapshots or (), 1):
            (live / "heap").mkdir(exist_ok=True)
            (live / "heap" / f"{number:06}").write_bytes(data)
        target = Path(place) / "run-1.rdbg"
        seal(live, target, made.end)
        return target.read_bytes()


def _log() -> bytes:
    """Return a log with every kind of value and of control record."""
    log = LogBuilder()
    name = TypeName("os", "terminal_size")
    values = (
        (None, True, False, 63, -(10**30), 1.5, 2j, "a\ud800", b"\xff", bytearray(b"x"), [1, [2]], {"a": (1,)}),
        (StructSequence(name, (80, 24)), StatResult(*range(13)), ContentRef(0, 9), {1, 2}, frozenset("a")),
        ExceptionValue(name, (1, "x"), (2, "gone", "x", None)),
    )
    for number, each in enumerate(values):
        log.crossing(4, each, arguments=(number, "x" * number))
    for rest, payload in (
        (0, b"\x0e"),
        (1, b"\x0e" + bytes(8) + b"\2\1\0"),
        (1, b"\x0e" + bytes(8) + b"\2\0\1" + bytes(8)),
        (2, encode.varint(1 << 40)),
        (9, b"\1" + encode.encode_value("worker")),
        (5, b"\1\1\5"),
        (6, b"\7"),
        (7, b"\1\2\3\4"),
        (8, b"\3\0" + encode.text("mem")),
        (10, encode.encode_value((0, "host"))),
        (11, encode.encode_value("here")),
        (12, b"\5"),
        (4, encode.encode_value(("thread", "x"))),
        (3, b"\0"),
    ):
        log.control(rest, payload)
    log.crossing(0, 1.0)
    return log.to_bytes()


def _world() -> bytes:
    world = LogBuilder()
    world.answer("getcwd", "", 1, "/home")
    world.answer("read", "/src/prog.py", 1, b"print(1)\n")
    world.answer("stat", "/src/x.py", 2, ExceptionValue(TypeName("builtins", "FileNotFoundError"), (2,), None))
    world.answer("listdir", "/src", 1, ["a", "b"])
    return world.to_bytes()


def snapshot(number: int) -> Snapshot:
    """Return a small heap; higher numbers give larger ones."""
    base = 0x7F0000000000
    items = [base + 0x100 + 48 * each for each in range(3 + 2 * number)]
    nodes = [
        Node(base, "builtins.module", 80, "main"),
        Node(base + 0x40, "builtins.list", 56 + 8 * len(items)),
        Node(base + 0x80, "<frame>", 0),
        *(Node(at, "__main__.Order", 48, float(at % 7), since=0 if at < items[-1] else number) for at in items),
        Node(base + 0x9000, "builtins.str", 60, repr("text" * number)),
    ]
    edges: list[tuple[int, str | int | tuple[int, int], int]] = [
        (base, ".orders", base + 0x40),
        *((base + 0x40, place, at) for place, at in enumerate(items)),
        *((at, ".name", base + 0x9000) for at in items),
        *((at, "~.back", base + 0x40) for at in items[:2]),
        (base + 0x80, ".x", items[0]),
        (base + 0x80, (2, 1), items[1]),
        (base + 0x80, (3, 1), items[2]),
        (base + 0x80, (4, 1), base),
    ]
    roots = [("__main__", base), ("thread 0 (MainThread): main() line 3", base + 0x80)]
    taken = Taken(number=number, event=number, name=f"n{number}", time_ns=number * 10**9, run="r")
    return build(nodes, edges, roots, taken=taken, cut=("Only 3.",))


def index() -> bytes:
    """Return an index as the debugger stores it beside a recording; targets insert the right key."""
    value = ["", "ended", 1, True, b"", bytes((1, 5, 2)), b"", encode.encode_value([1, 0, "ValueError", "x", 5, 0])]
    return INDEX_MAGIC + zstandard.compress(encode.encode_value(value))


def transfers() -> bytes:
    """Return what a process of a group of six events sent and received."""
    ends = [
        Endpoint(1, "pipe", "13:7", "13:7", 0, ""),
        Endpoint(2, "udp", "127.0.0.1:9", "", 4, ""),
        Endpoint(3, "unix", "5", "6", 3, "/tmp/socket", "/tmp/peer", 4711),
        Endpoint(4, "output", "1", "", 0, ""),
        Endpoint(5, "process", "2", "", 0, ""),
        Endpoint(6, "signal", "1:10", "2", 0, ""),
    ]
    plain = Transfer(1, 0, 1, 1, "send", 3, 5, "", False, False)
    return pack_transfers(
        ends,
        [
            plain,
            plain._replace(event=3, begun=1, ticket=4, endpoint=2, way="receive", address="10.0.0.1:5", peeks=True),
            plain._replace(event=2, begun=1, ticket=3, endpoint=3, urgent=True, is_partly_known=True),
            plain._replace(event=6, begun=4, ticket=7, endpoint=4, stream=1),
            plain._replace(event=5, begun=4, ticket=8, endpoint=5, way="receive", length=0, digest=0),
            plain._replace(event=6, begun=5, ticket=9, endpoint=6, way="receive", length=0, digest=0, passes=True),
            plain._replace(event=0, begun=5, ticket=0, way="receive"),
        ],
        ((6, 1),),
    )


def recorded(python: str, place: Path, env: dict[str, str]) -> list[Input]:
    """Record the programs and return the files. Raises RuntimeError."""
    found = []
    for program in sorted(PROGRAMS.glob("*.py")):
        target = place / f"{program.stem}.rdbg"
        words = ["-m", "replaydbg", "record", "-q", "--snapshot-every", "40", "-o", str(target), "--", str(program)]
        done = subprocess.run([python, *words], env=env, cwd=place, capture_output=True, timeout=120, check=False)
        if not target.exists():
            raise RuntimeError(f"{program.name} cannot be recorded: {done.stderr.decode(errors='replace')}")
        found.append(Input(RECORDING, target.read_bytes()))
    return found


def load(directory: Path) -> list[Input]:
    """Return the inputs stored in a directory."""
    found = []
    for path in sorted(directory.glob("*")):
        kind = path.name.partition(".")[2]
        if kind in KINDS:
            found.append(Input(kind, path.read_bytes()))
    return found


def keep(directory: Path, each: Input) -> None:
    """Store an input under its digest."""
    path = directory / f"{each.digest}.{each.kind}"
    if not path.exists():
        partial = path.with_name(f".{path.name}-{os.getpid()}")
        partial.write_bytes(each.data)
        partial.replace(path)
