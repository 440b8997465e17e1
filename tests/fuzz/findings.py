"""A finding on disk: its input, minimised, and the command that reproduces it."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz import framing
from tests.fuzz.corpus import RECORDING, Input


def save(directory: Path, target: str, key: str, text: str, found: Input, seed: str) -> Path:
    """Write a finding and return the file that describes it."""
    directory.mkdir(parents=True, exist_ok=True)
    name = f"{target}-{hashlib.blake2b(key.encode(), digest_size=5).hexdigest()}"
    data = directory / f"{name}.{found.kind}"
    data.write_bytes(found.data)
    path = directory / f"{name}.json"
    command = f"python -m tests.fuzz --repeat {path}"
    facts = {"target": target, "key": key, "input": data.name, "seed": seed, "command": command, "text": text}
    partial = path.with_name(f".{path.name}-{os.getpid()}")
    partial.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
    return path


def minimised(found: Input, is_same: Callable[[bytes], bool], *, seconds: float, most: int = 3000) -> Input:
    """Return the smallest input found in that time that still shows the same finding."""
    end = time.monotonic() + seconds
    data = found.data
    if found.kind == RECORDING:
        # Stored uncompressed, sections can be reduced one by one; compressed ones may be shorter at first.
        plain = framing.sealed(framing.sections_of(data))
        data = plain if is_same(plain) else data
    tried = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(Input(found.kind, data)):
            if time.monotonic() > end or tried >= most:
                return Input(found.kind, data)
            tried += 1
            if is_same(candidate):
                data, is_smaller = candidate, True
                break
    return Input(found.kind, data)


def _smaller(of: Input) -> Iterator[bytes]:
    """Yield reduced inputs; for a recording without sections and pieces of sections, with valid framing."""
    if of.kind == RECORDING:
        sections = framing.sections_of(of.data)
        for name in sections:
            yield from _if_less(framing.sealed({each: data for each, data in sections.items() if each != name}), of)
        for name, data in sections.items():
            for piece in _pieces(data):
                yield from _if_less(framing.sealed({**sections, name: piece}), of)
    for piece in _pieces(of.data):
        yield piece


def _if_less(data: bytes, of: Input) -> Iterator[bytes]:
    if len(data) < len(of.data):
        yield data


def _pieces(data: bytes) -> Iterator[bytes]:
    """Yield `data` without a part of it, large parts first."""
    size = len(data) // 2
    while size >= 1:
        for start in range(0, len(data), size):
            yield data[:start] + data[start + size :]
        size = size // 4 if size > 8 else size // 2
