"""Dispatch of a query and encoding of its answer: the end of the probe's script."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from replaydbg.engine.probe.predicate_queries import judged, judging, value_of_part
    from replaydbg.engine.probe.store_queries import spans, stores, waiting
    from replaydbg.engine.probe.value_queries import (
        argument,
        arguments,
        change,
        content,
        evaluate,
        exception,
        items,
        kinds,
        mutable,
        of_object,
        opaque,
        outgoing,
        place,
        tasks,
        types_named,
        variables,
    )

QUERIES = {
    each.__name__: each
    for each in (
        variables,
        arguments,
        evaluate,
        items,
        change,
        place,
        kinds,
        tasks,
        exception,
        mutable,
        opaque,
        content,
        of_object,
        outgoing,
        types_named,
        stores,
        spans,
        waiting,
        judged,
        judging,
        value_of_part,
    )
}


def number(value: int) -> bytes:
    """A number from 0 to 2**64 - 1, seven bits a byte."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def encoded(value: Any) -> bytes:
    """A plain value as docs/reference/format.md has it: reading that costs no more than its length."""
    if value is None or value is False or value is True:
        return b"\x00" if value is None else b"\x02" if value else b"\x01"
    if isinstance(value, int):
        plain = int.__index__(value)
        if -(1 << 63) <= plain < 1 << 63:
            return b"\x03" + number(plain << 1 if plain >= 0 else ~(plain << 1))
        size = plain.bit_length() // 8 + 1
        return b"\x04" + number(size) + plain.to_bytes(size, "little", signed=True)
    if isinstance(value, (str, bytes)):
        data = str.encode(value, "utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
        return (b"\x06" if isinstance(value, str) else b"\x07") + number(len(data)) + data
    if isinstance(value, (list, tuple)):
        return (b"\x09" if isinstance(value, list) else b"\x08") + number(len(value)) + b"".join(map(encoded, value))
    if isinstance(value, dict):
        parts = b"".join(encoded(each) for item in value.items() for each in item)
        return b"\x0a" + number(len(value)) + parts
    return encoded(f"<{type(value).__qualname__}>")


_question = eval(argument.decode("utf-8", "surrogatepass"))
try:
    answer = encoded(QUERIES[_question["do"]](_question))
except BaseException as _error:
    answer = encoded({"failed": f"{type(_error).__name__}: {_error}"})
