"""Mutations of JSON: one value somewhere in it is replaced, and the result is usually still JSON."""

import json
from random import Random
from typing import Any

from tests.fuzz import chunks

_ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    1e308,
    10**30,
    -(10**400),
    "",
    "\0",
    "\ud800",
    "\x1b[31m",
    "../../etc/passwd",
    "/dev/zero",
    "x" * 5000,
    [],
    {},
    [[]],
    {"": None},
    [None] * 50,
    {"kind": 0},
)


def mutated(data: bytes, rng: Random) -> bytes:
    """Return a JSON text with a changed value; bytes that are not JSON are changed as bytes."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return chunks.mutated(data, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        value = _changed(value, rng)
    if rng.randrange(60) == 0:
        return deep(rng) if rng.randrange(2) else chunks.mutated(as_bytes(value), rng)
    return as_bytes(value)


def as_bytes(value: Any) -> bytes:
    """Return `value` as JSON, lone surrogates and all."""
    return json.dumps(value).encode("ascii")


def deep(rng: Random) -> bytes:
    """Return JSON that is nested deeply."""
    depth = rng.choice((50, 900, 100_000))
    return rng.choice((b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth, b"[" * depth))


def _changed(value: Any, rng: Random) -> Any:
    """Descend at random, and change a value."""
    if isinstance(value, dict) and value and rng.randrange(8):
        key = rng.choice(list(value))
        changed = dict(value)
        match rng.randrange(12):
            case 0:
                del changed[key]
            case 1:
                changed[rng.choice(("", "x", *value))] = changed.pop(key)
            case _:
                changed[key] = _changed(value[key], rng)
        return changed
    if isinstance(value, list) and value and rng.randrange(8):
        at = rng.randrange(len(value))
        match rng.randrange(10):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return value[: at + 1] * rng.choice((2, 3)) + value[at:]
            case 2:
                return rng.sample(value, len(value))
            case _:
                return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]
    return _leaf(value, rng)


def _leaf(value: Any, rng: Random) -> Any:
    if rng.randrange(3) == 0:
        return rng.choice(_ODD)
    if isinstance(value, bool) or value is None:
        return rng.choice(_ODD)
    if isinstance(value, int):
        return chunks.number(rng, abs(value)) * rng.choice((1, 1, 1, -1))
    if isinstance(value, str):
        text = chunks.mutated(value.encode("utf-8", "surrogatepass"), rng).decode("utf-8", "surrogateescape")
        return rng.choice((text, value + text, value * 2))
    return rng.choice(_ODD)
