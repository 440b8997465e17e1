"""One mutation of an input: the result depends only on the input and the generator."""

import json
import struct
from collections.abc import Mapping
from functools import lru_cache
from random import Random

import zstandard

from replaydbg.debugger.first_pass.run_index import MAGIC as INDEX_MAGIC
from replaydbg.errors import ReplaydbgError
from replaydbg.events.run_facts import GateRow
from replaydbg.log.header_and_end import parse_header
from tests.fuzz import chunks, documents, framing, logs, packs, slots, snapshots
from tests.fuzz.corpus import GROUP, INDEX, LOG, NOTES, PACK, RECORDING, SNAPSHOT, TRANSFERS, WORLD, Input
from tests.harness.build import header_json

EXAMPLE_HEADER = json.dumps(header_json()).encode()


def mutated(of: Input, rng: Random, *, for_replay: bool = False) -> bytes:
    """Return a mutation of `of`. `for_replay` leaves the program and its imports unchanged."""
    try:
        return _in_its_structure(of, rng, for_replay=for_replay)
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError, RecursionError, struct.error):
        # A mutation of a mutation: the structure may be lost already.
        return chunks.mutated(of.data, rng)


def _in_its_structure(of: Input, rng: Random, *, for_replay: bool) -> bytes:
    match of.kind:
        case "rdbg":
            return _recording(of.data, rng, for_replay=for_replay)
        case "log":
            return logs.mutated(of.data, rng, gates_of(EXAMPLE_HEADER))
        case "world":
            return logs.mutated(of.data, rng, gates_of(EXAMPLE_HEADER), is_world=True)
        case "snap":
            return snapshots.mutated(of.data, rng)
        case "index":
            return _index(of.data, rng)
        case "transfers":
            return slots.mutated(of.data, rng)
        case "tar":
            return packs.mutated(of.data, rng, lambda data, rng: _recording(data, rng, for_replay=False))
    return documents.mutated(of.data, rng)


KNOWN = (RECORDING, LOG, WORLD, SNAPSHOT, INDEX, NOTES, GROUP, TRANSFERS, PACK)


@lru_cache(50)
def gates_of(header: bytes) -> tuple[GateRow, ...]:
    """Return the gate table of a header; none if it has none."""
    try:
        return parse_header("", header).gates
    except ReplaydbgError:
        return ()


def _recording(data: bytes, rng: Random, *, for_replay: bool) -> bytes:
    sections = framing.sections_of(data)
    if not sections or (not for_replay and rng.randrange(25) == 0):
        return chunks.mutated(data, rng)
    if rng.randrange(25 if for_replay else 10) == 0:
        return framing.mutated(sections, rng)
    changed = dict(sections)
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = _chosen(sections, rng, for_replay=for_replay)
        changed[name] = _section(name, changed[name], sections, rng)
    return framing.sealed(changed)


def _chosen(sections: Mapping[str, bytes], rng: Random, *, for_replay: bool) -> str:
    names = list(sections)
    if for_replay:
        wanted = rng.choices(("log", "header", "end", "world"), (16, 3, 1, 0))[0]
        return wanted if wanted in sections else names[0]
    heaps = [name for name in names if name.startswith("heap/")]
    if heaps and rng.randrange(2):
        return rng.choice(heaps)
    return rng.choice(names)


def _section(name: str, data: bytes, sections: Mapping[str, bytes], rng: Random) -> bytes:
    if name in ("header", "end"):
        return documents.mutated(data, rng)
    if name in ("log", "world"):
        return logs.mutated(data, rng, gates_of(sections.get("header", b"")), is_world=name == "world")
    if name == "transfers":
        return slots.mutated(data, rng)
    if name.startswith("heap/"):
        return snapshots.mutated(data, rng)
    return chunks.mutated(data, rng)


def _index(data: bytes, rng: Random) -> bytes:
    if rng.randrange(10) == 0:
        return chunks.mutated(data, rng)
    try:
        made = zstandard.ZstdDecompressor(max_window_size=1 << 22)
        plain = made.stream_reader(data[len(INDEX_MAGIC) :]).read(1 << 20)
    except zstandard.ZstdError:
        return chunks.mutated(data, rng)
    return INDEX_MAGIC + zstandard.compress(chunks.mutated(plain, rng))
