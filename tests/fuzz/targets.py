"""Functions that read an input in this process. A target returns a signature of its actions, or raises a finding."""

import io
import os
import re
import shutil
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import zstandard

from replaydbg.cli import main as command_line
from replaydbg.debugger.first_pass import run_index
from replaydbg.distributed.causal_order import CausalOrder
from replaydbg.distributed.happens_before import edges_without_bytes
from replaydbg.distributed.matching.columns import Member
from replaydbg.errors import ReplaydbgError
from replaydbg.events.records import Event
from replaydbg.events.show import show_call, show_outcome, to_json
from replaydbg.heap.comparison.snapshot_diff import diff
from replaydbg.heap.retention.growth import growth
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.snapshot import Snapshot
from replaydbg.heap.storage import raw_snapshot
from replaydbg.heap.storage.snapshot_file import DeltaBase, mark_of, pack, read_begin, unpack
from replaydbg.log.coding import encode
from replaydbg.log.coding.decode import Malformed, decode_value
from replaydbg.log.edit.definitions import Definitions
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.entries.raw import RawStream
from replaydbg.log.entries.stream import LogStream
from replaydbg.log.reader import Recording, open_recording
from replaydbg.log.sources import sources_of
from replaydbg.log.transfers import read_transfers
from replaydbg.tui.worker.mark_notes import load_notes
from tests.fuzz import corpus, framing, groups, packs
from tests.fuzz.canary import looking_away
from tests.fuzz.mutate import EXAMPLE_HEADER, gates_of
from tests.fuzz.space import scratch, scratch_file
from tests.harness.build import example

Target = Callable[[bytes, Random], str]

CODES = (0, 1, 2, 3)
"""The exit codes of commands that only read."""


class Wrong(Exception):
    """A target did something forbidden, which the message describes."""


_VARIES = re.compile(r"'[^']*'|\"[^\"]*\"|0x[0-9a-f]+|[\d,.]*\d")


def shape(sentences: Iterable[str]) -> str:
    """Return the common part of sentences that differ in numbers and names."""
    return "|".join(_VARIES.sub("#", each)[:100] for each in list(sentences)[:3])


# ---- parts ----


def log(data: bytes, rng: Random) -> str:
    """Decode a log in both ways, and show each event."""
    gates = gates_of(EXAMPLE_HEADER)
    body = data[LOG_HEADER:]
    stream = LogStream(iter([body]), total=len(body), stored=len(data), gates=gates)
    last = ""
    for entry in stream.entries():
        if isinstance(entry, Event):
            last = type(entry.outcome).__name__
            show_call(entry)
            show_outcome(entry)
            to_json(entry.outcome)
        else:
            last = entry.kind.name
    if rng.randrange(4) == 0:
        definitions = Definitions()
        for each in RawStream(iter([body]), total=len(body), stored=len(data), gates=gates).records():
            if each.is_definition:
                definitions.load(each.data)
    return f"{last} {shape([stream.problem or ''])}"


def world(data: bytes, rng: Random) -> str:
    """Decode an import world."""
    body = data[LOG_HEADER:]
    stream = LogStream(iter([body]), total=len(body), stored=len(data))
    for answer in stream.answers():
        to_json(answer.outcome)
    return shape([stream.problem or ""])


@cache
def _first() -> tuple[Snapshot, DeltaBase]:
    packed = pack(corpus.snapshot(1))
    made = unpack(packed, "first")
    return made, DeltaBase(made, mark_of(packed))


def snapshot(data: bytes, rng: Random) -> str:
    """Read a snapshot's file, and run every query on it."""
    first, base = _first()
    try:
        if data.startswith(raw_snapshot.MAGIC):
            read = raw_snapshot.read_raw(data, "fuzzed")
        else:
            link = read_begin(data, "fuzzed")
            read = unpack(data, "fuzzed", base=base if link is not None and link[1] is not None else None)
    except ReplaydbgError as error:
        return shape([str(error)])
    held = Holding(read)
    for node in range(min(len(read), 3)):
        held.path(node)
        held.holders(node)
        held.chain(node)
        held.text(node)
    held.census()
    held.largest(5)
    if rng.randrange(3) == 0:
        diff(first, held)
    if rng.randrange(6) == 0:
        growth([first, read, held, read])
    return f"read {len(read).bit_length()} {len(read.roots)}"


def notes(data: bytes, rng: Random) -> str:
    """Read the notes beside a recording."""
    path = scratch_file("run.rdbg.notes.json", data)
    return str(len(load_notes(Path(path.removesuffix(".notes.json")))))


def index(data: bytes, rng: Random) -> str:
    """Read the debugger's index beside a recording, with a matching key."""
    path = Path(scratch_file("run.rdbg", b"recording"))
    magic = run_index.MAGIC
    try:
        plain = zstandard.ZstdDecompressor(max_window_size=1 << 22).stream_reader(data[len(magic) :]).read(1 << 22)
        value = decode_value(plain)
        if isinstance(value, list) and value and isinstance(value[0], str):
            # Its own key, so that the rest is read.
            plain = encode.encode_value([run_index._key(path), *value[1:]])
        data = magic + zstandard.compress(plain)
    except (zstandard.ZstdError, Malformed, TypeError, ValueError):
        pass
    scratch_file("run.rdbg.index", data)
    found = run_index.load_index(path)
    if found is None:
        return "none"
    return f"{len(found.raised)} {len(found.output)} {found.uncaught is None}"


def transfers(data: bytes, rng: Random) -> str:
    """Read what a process sent and received, in a live directory."""
    path = scratch(os.getpid()) / "run-3.rdbg-live"
    with looking_away():
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        live = example(1).write_live(path.parent, "run-3")
        (live / "transfers").write_bytes(data)
    with open_recording(path) as opened:
        try:
            ends, columns = read_transfers(opened)
        except ReplaydbgError as error:
            return shape([str(error)])
    for each in columns.transfers():
        if not 1 <= each.endpoint <= len(ends) or each.event > 6 or each.begun > 6:
            raise Wrong(f"{each} is impossible")
    for event, end in columns.passed:
        if not 1 <= event <= 6 or not 1 <= end <= len(ends):
            raise Wrong(f"a descriptor of endpoint {end} in event {event} is impossible")
    CausalOrder(edges_without_bytes([Member(number, ends, columns, events=6) for number in (1, 2)]))
    return f"{len(ends)} {columns.count} {len(columns.passed)}"


# ---- recordings ----


def recording(data: bytes, rng: Random) -> str:
    """Open a sealed file, and read all of it."""
    return _read(Path(scratch_file("run.rdbg", data)))


def live(data: bytes, rng: Random) -> str:
    """Do the same for a live directory with these sections."""
    path = scratch(os.getpid()) / "run-2.rdbg-live"
    with looking_away():
        _lay_out(path, data)
    return _read(path)


def _lay_out(path: Path, data: bytes) -> None:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, section in framing.sections_of(data).items():
        folder, _, rest = name.partition("/")
        file = {"header": "header.json", "end": "end.json"}.get(name, name)
        if rest and folder in ("source", "heap") and "/" not in rest and rest not in ("", ".", ".."):
            (path / folder).mkdir(exist_ok=True)
        elif rest:
            continue
        if "\0" not in file and len(file) < 200 and file not in ("", ".", ".."):
            (path / file).write_bytes(section)


def _read(path: Path) -> str:
    try:
        with open_recording(path) as opened:
            return shape([*_contents(opened), *opened.problems])
    except ReplaydbgError as error:
        return shape([str(error)])


def _contents(opened: Recording) -> list[str]:
    for entry in opened.events():
        if isinstance(entry, Event):
            show_call(entry)
    answers = sum(1 for _ in opened.world())
    for name in opened.sections:
        for _ in opened.pieces(name):
            pass
    sources_of(opened)
    try:
        opened.shared_names()
    except ReplaydbgError as error:
        return [str(error)]
    return [str(answers)]


_GROUP_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("ps", "FILE"),
    ("ps", "--json", "FILE"),
    ("ls",),
    ("info", "FILE/2"),
    ("verify", "FILE/3"),
    ("events", "FILE/3"),
    ("FILE",),
)


def group(data: bytes, rng: Random) -> str:
    """Read the directory of a group, and pass it to a reading command."""
    directory = groups.lay_out(data, rng)
    name = str(directory).removesuffix(".rdbgs")
    words = [word.replace("FILE", name) for word in rng.choice(_GROUP_COMMANDS)]
    try:
        return shape([*groups.read(directory), command(words, name, "")])
    finally:
        if rng.randrange(50) == 0:
            groups.remove()  # it is made again


def packed(data: bytes, rng: Random) -> str:
    """Unpack the file of a group."""
    return shape(packs.read(data))


_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("info", "FILE"),
    ("info", "--json", "FILE"),
    ("events", "FILE"),
    ("events", "--json", "FILE"),
    ("events", "--call", "time.*", "--from", "2", "FILE"),
    ("verify", "FILE"),
    ("verify", "--json", "FILE"),
    ("resources", "FILE"),
    ("resources", "--json", "FILE", "@start", "@end"),
    ("snapshots", "FILE"),
    ("snapshots", "--json", "FILE"),
    ("snapshots", "--growth", "FILE"),
    ("snapshots", "--growth", "--json", "--all", "FILE"),
    ("diff", "FILE", "@#1", "@#2"),
    ("diff", "--json", "--all", "--scope", "all", "FILE", "@#1", "@#3"),
    ("heap", "FILE", "@#1"),
    ("heap", "--json", "FILE", "@#2"),
    ("heap", "--of", "orders", "FILE", "@#2"),
    ("diff", "FILE", "FILE", "--at", "@#2"),
    ("pack", "FILE", "-o", "OUT"),
    ("ls",),
    ("ls", "--json"),
    ("FILE",),
)


def commands(data: bytes, rng: Random) -> str:
    """Pass the file to a reading command, as the command line does."""
    words = rng.choice(_COMMANDS)
    store = f"{scratch(os.getpid())}/replaydbg/recordings"
    Path(store).mkdir(parents=True, exist_ok=True)
    path = scratch_file("replaydbg/recordings/run-1.rdbg", data)
    return command(words, path, f"{scratch(os.getpid())}/out.rdbg")


def lone(data: bytes, rng: Random) -> str:
    """Pass a snapshot's file to a reading command."""
    path = scratch_file("lone.heap", data)
    words = rng.choice((("heap", "FILE"), ("heap", "--json", "--of", "orders", "FILE"), ("diff", "FILE", "FILE")))
    return command(words, path, "")


def command(words: Iterable[str], path: str, output: str) -> str:
    """Run a command line in this process. Raises Wrong for a bad exit code or message."""
    given = [{"FILE": path, "OUT": output}.get(word, word) for word in words]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code: Any = command_line.main(given)
        except SystemExit as error:
            code = error.code
        finally:
            if output:
                Path(output).unlink(missing_ok=True)
    said = err.getvalue()
    if code not in CODES:
        raise Wrong(f"exit code {code!r} of {' '.join(words)}")
    if "Traceback" in said or (code == 2 and "usage:" in said):
        raise Wrong(f"{' '.join(words)} prints {said[-300:]!r}")
    if code and said and not said.rstrip("\n").endswith((".", "!")):
        raise Wrong(f"{' '.join(words)} ends without a sentence: {said[-300:]!r}")
    return f"{given[0] if given[0] != path else 'bare'} {code} {shape(said.splitlines())}"


TARGETS: dict[str, tuple[str, Target, float]] = {
    "log": (corpus.LOG, log, 4),
    "world": (corpus.WORLD, world, 1),
    "snapshot": (corpus.SNAPSHOT, snapshot, 3),
    "notes": (corpus.NOTES, notes, 0.3),
    "index": (corpus.INDEX, index, 0.5),
    "transfers": (corpus.TRANSFERS, transfers, 0.5),
    "recording": (corpus.RECORDING, recording, 3),
    "live": (corpus.RECORDING, live, 1),
    "commands": (corpus.RECORDING, commands, 3),
    "lone": (corpus.SNAPSHOT, lone, 0.5),
    "group": (corpus.GROUP, group, 1),
    "pack": (corpus.PACK, packed, 0.5),
}
"""For each its name: the kind of its inputs, the function, and its share of the time."""
