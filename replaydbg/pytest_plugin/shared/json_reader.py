"""Read JSON that another process wrote into frozen dataclasses: a file may be cut, and a program can write its own.

Every field is checked by type here, so that its users need not. Fields that are not known are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from replaydbg.log.allowance import load_json

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def read_json(text: str) -> object:
    """Return the content of a JSON text. Raises ValueError, also for one that would take too much memory."""
    return load_json(text.encode("utf-8", "surrogatepass"))


def read_as(kind: type[T], text: str) -> T:
    """Return the dataclass `kind` from a JSON text. Raises ValueError, with the reason."""
    return fields_as(kind, read_json(text))


def fields_as(kind: type[T], data: object) -> T:
    """Return the dataclass `kind` from an object that was JSON. Raises ValueError, with the reason."""
    if not isinstance(data, Mapping):
        raise ValueError(f"it is {_named(data)} and not an object")
    found = {}
    types = _types(kind)
    for each in fields(kind):
        if each.name in data:
            found[each.name] = _value(types[each.name], data[each.name], each.name)
        elif each.default is MISSING and each.default_factory is MISSING:
            raise ValueError(f"{each.name!r} is missing")
    return kind(**found)


@cache
def _types(kind: type[DataclassInstance]) -> Mapping[str, Any]:
    return MappingProxyType(get_type_hints(kind))


def _value(kind: Any, value: object, name: str) -> object:
    """Return a value of a field. Raises ValueError if it has another type."""
    if kind is object:
        return value
    if kind is float and type(value) is int:
        return float(value)
    if get_origin(kind) is UnionType:
        if value is None and NoneType in get_args(kind):
            return None
        kind = next(each for each in get_args(kind) if each is not NoneType)
        return _value(kind, value, name)
    if get_origin(kind) is tuple and isinstance(value, list):
        return _items(get_args(kind), value, name)
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, Mapping):
        return fields_as(kind, value)
    if type(value) is not kind:
        raise ValueError(f"{name!r} is {_named(value)}, which is not valid")
    return value


def _items(kinds: tuple[Any, ...], values: list[object], name: str) -> tuple[object, ...]:
    if kinds[-1] is Ellipsis:
        return tuple(_value(kinds[0], each, name) for each in values)
    if len(kinds) != len(values):
        raise ValueError(f"{name!r} has {len(values)} elements, which is not valid")
    return tuple(_value(kind, each, name) for kind, each in zip(kinds, values, strict=True))


def _named(value: object) -> str:
    return "null" if value is None else type(value).__name__
