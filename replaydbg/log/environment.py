"""Makes a Header and an End of the JSON in a recording, which may hold anything."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from replaydbg.errors import Corrupt, NewerFormat
from replaydbg.events.environment import End, GateRow, Header, Note, PythonBuild
from replaydbg.log.allowance import load_json
from replaydbg.log.encode import FORMAT

JSON_LIMIT = 32 << 20
"""The longest header or end that is read. Real ones have some ten kilobytes; only `sources` grows with the program."""


class _Fields:
    """Takes fields of a JSON object by type. A missing field gives an empty value, one of another type is damage."""

    def __init__(self, path: str, what: str, data: object) -> None:
        self._path = path
        self._what = what
        if not isinstance(data, dict):
            raise Corrupt(path, f"its {what} is not an object")
        self.data: dict[str, Any] = data

    def _take(self, name: str, kinds: type | tuple[type, ...], default: Any) -> Any:
        value = self.data.get(name, default)
        # A bool is an int for isinstance; in JSON the two are not alike.
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise Corrupt(self._path, f"{name!r} in its {self._what} is {type(value).__name__}, which it cannot be")
        return value

    def text(self, name: str) -> str:
        """A string."""
        return str(self._take(name, str, ""))

    def integer(self, name: str) -> int:
        """A whole number."""
        return int(self._take(name, int, 0))

    def real(self, name: str) -> float:
        """A number."""
        try:
            return float(self._take(name, (int, float), 0.0))
        except OverflowError as error:
            raise Corrupt(self._path, f"{name!r} in its {self._what} is out of range") from error

    def truth(self, name: str) -> bool:
        """True or false."""
        return bool(self._take(name, bool, False))

    def list(self, name: str, kind: type) -> tuple[Any, ...]:
        """A list of `kind`."""
        items = self._take(name, list, [])
        if not all(isinstance(item, kind) for item in items):
            raise Corrupt(self._path, f"{name!r} in its {self._what} has an element of another kind")
        return tuple(items)

    def object(self, name: str) -> _Fields:
        """An object."""
        return _Fields(self._path, self._what, self._take(name, dict, {}))

    def texts(self, name: str) -> MappingProxyType[str, str]:
        """An object whose values are strings."""
        data = self.object(name).data
        if not all(isinstance(value, str) for value in data.values()):
            raise Corrupt(self._path, f"{name!r} in its {self._what} has an element of another kind")
        return MappingProxyType(data)


def _load(path: str, what: str, data: bytes) -> _Fields:
    if len(data) > JSON_LIMIT:
        raise Corrupt(path, f"its {what} is longer than {JSON_LIMIT} bytes")
    try:
        return _Fields(path, what, load_json(data))
    except ValueError as error:
        raise Corrupt(path, f"its {what} cannot be read") from error


def parse_header(path: str, data: bytes) -> Header:
    """Return the header that `data` (JSON) holds; `path` is for messages. Raises Corrupt or NewerFormat."""
    fields = _load(path, "header", data)
    number = fields.integer("format")
    if number > FORMAT:
        raise NewerFormat(path, number, FORMAT)
    if number < 1:
        raise Corrupt(path, f"its header has format {number}, which never was")
    python = fields.object("python")
    return Header(
        format=number,
        tool=fields.text("tool"),
        created=fields.text("created"),
        name=fields.text("name"),
        kind=fields.text("kind"),
        target=fields.text("target"),
        argv=fields.list("argv", str),
        orig_argv=fields.list("orig_argv", str),
        cwd=fields.text("cwd"),
        env=fields.texts("env"),
        hash_seed=fields.integer("hash_seed"),
        python=PythonBuild(
            version=python.text("version"),
            hexversion=python.integer("hexversion"),
            executable=python.text("executable"),
            prefix=python.text("prefix"),
            cache_tag=python.text("cache_tag"),
            soabi=python.text("soabi"),
            flags=python.list("flags", str),
        ),
        platform=fields.text("platform"),
        stdio=fields.list("stdio", str),
        signals=fields.texts("signals"),
        fds=fields.list("fds", int),
        gates=tuple(_gate(path, row) for row in fields.list("gates", dict)),
        gates_digest=fields.text("gates_digest"),
        raw=MappingProxyType(fields.data),
    )


def _gate(path: str, row: dict[str, Any]) -> GateRow:
    fields = _Fields(path, "gate table", row)
    return GateRow(fields.text("name"), fields.integer("shape"), fields.text("kind"))


def parse_end(path: str, data: bytes) -> End:
    """Return the end that `data` (JSON) holds; `path` is for messages. Raises Corrupt."""
    fields = _load(path, "end", data)
    return End(
        status=fields.integer("status"),
        seconds=fields.real("seconds"),
        cpu_seconds=fields.real("cpu_seconds"),
        reason=None if fields.data.get("reason") is None else fields.text("reason"),
        events=fields.integer("events"),
        notes=tuple(_note(path, row) for row in fields.list("notes", dict)),
        packages=fields.texts("packages"),
        sources=fields.texts("sources"),
        ok=fields.truth("ok"),
        raw=MappingProxyType(fields.data),
    )


def _note(path: str, row: dict[str, Any]) -> Note:
    fields = _Fields(path, "notes", row)
    return Note(fields.text("kind"), fields.text("text"), fields.integer("count"))
