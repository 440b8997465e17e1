"""Parse a Header and an End from the JSON in a recording, which may contain anything.

Every field is checked by type and range here, so that its users need not. Fields that may be missing, because older
recorders did not write them, get an empty value.
"""

from __future__ import annotations

import re
from types import MappingProxyType

from replaydbg.errors import Corrupt, NewerFormat
from replaydbg.events.run_facts import Branch, End, GateRow, Header, Note, PythonBuild
from replaydbg.log.allowance import load_json
from replaydbg.log.coding.encode import CHECKS, FORMAT
from replaydbg.log.entries.logfile import LOG_HEADER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

JSON_LIMIT = 32 << 20
"""The longest header or end that is read. Real ones are some ten kilobytes; only `sources` grows with the program."""


KINDS = ("script", "module", "command", "directory")
STREAMS = ("tty", "pipe", "file", "null", "socket", "closed")
_NAME = re.compile(r"[A-Za-z0-9_+-]+([.][A-Za-z0-9_+-]+)*")
"""A build, whose name becomes part of a file name: not a path."""
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_GATE = re.compile(r"[A-Za-z0-9_.()]{1,200}")
_TYPE = re.compile(r"[^\s]{1,200}")
_WORD = re.compile(r"[a-z_-]{1,40}")
_NUMBER = re.compile(r"[1-9][0-9]?")
MOST_GATES = 1023
"""The capacity of the core, see gate.c."""
MOST_FDS = 1 << 20
"""The kernel's default limit for descriptors of a process."""
MOST_SIGNAL = 64
MOST_NUMBER = 1 << 20
"""The highest number of a process in a group that is believed."""
MOST_WORDS = 1 << 20
"""Maximum number of arguments, options and variables each. The kernel accepts no program with as many."""


class _Fields:
    """Takes fields of a JSON object by type. A missing field gives an empty value, one of another type is damage."""

    def __init__(self, path: str, what: str, data: object, *, is_for_system: bool = True) -> None:
        """`is_for_system`: its strings are passed to the system when a replay starts, so they must be valid for it."""
        self._path = path
        self._is_for_system = is_for_system
        self._what = what
        if not isinstance(data, dict):
            raise Corrupt(path, f"its {what} is not an object")
        self.data: dict[str, Any] = data

    def _take(self, name: str, kinds: type | tuple[type, ...], default: Any) -> Any:
        value = self.data.get(name, default)
        # A bool is an int for isinstance; in JSON the two are different.
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise Corrupt(self._path, f"{name!r} in its {self._what} is {type(value).__name__}, which is not valid")
        return value

    def wrong(self, name: str, why: str) -> Corrupt:
        """Return the error for an invalid value of the field `name`."""
        return Corrupt(self._path, f"{name!r} in its {self._what} {why}")

    def text(self, name: str) -> str:
        """A string that is valid for the system: without NUL, and with lone surrogates only for undecodable bytes."""
        return self._sound(name, str(self._take(name, str, "")))

    def _sound(self, name: str, value: str) -> str:
        if not self._is_for_system:
            return value
        if "\0" in value:
            raise self.wrong(name, "has a NUL character")
        if not value.isascii():
            try:
                value.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError as error:
                raise self.wrong(name, "is not text") from error
        return value

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of `choices`; empty if it is missing."""
        value = self.text(name)
        if name in self.data and value not in choices:
            raise self.wrong(name, f"is {value[:40]!r}, which is not valid")
        return value

    def form(self, name: str, form: re.Pattern[str]) -> str:
        """A string that matches `form`, or an empty one."""
        value = self.text(name)
        if value and not (len(value) <= 200 and form.fullmatch(value)):
            raise self.wrong(name, f"is {value[:40]!r}, which is not valid")
        return value

    def integer(self, name: str, least: int = 0, most: int = (1 << 63) - 1) -> int:
        """A whole number from `least` to `most`."""
        value = int(self._take(name, int, max(least, 0)))
        if not least <= value <= most:
            raise self.wrong(name, "is out of range")
        return value

    def optional(self, name: str, most: int = (1 << 63) - 1) -> int | None:
        """A whole number or null."""
        return None if self.data.get(name) is None else self.integer(name, 0, most)

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
        if not all(isinstance(item, kind) and not isinstance(item, bool) for item in items):
            raise self.wrong(name, "has an element of the wrong type")
        if len(items) > MOST_WORDS:
            raise self.wrong(name, "is too long")
        if kind is str:
            for item in items:
                self._sound(name, item)
        return tuple(items)

    def object(self, name: str) -> _Fields:
        """An object."""
        return _Fields(self._path, self._what, self._take(name, dict, {}), is_for_system=self._is_for_system)

    def texts(self, name: str) -> MappingProxyType[str, str]:
        """An object whose values are strings."""
        data = self.object(name).data
        if not all(isinstance(value, str) for value in data.values()):
            raise self.wrong(name, "has an element of the wrong type")
        for key, value in data.items():
            self._sound(name, key)
            self._sound(name, value)
        return MappingProxyType(data)

    def variables(self, name: str) -> MappingProxyType[str, str]:
        """An object that is a valid environment."""
        found = self.texts(name)
        if any(not key or "=" in key for key in found):
            raise self.wrong(name, "has an invalid variable name")
        return found


def _load(path: str, what: str, data: bytes, *, is_for_system: bool = True) -> _Fields:
    if len(data) > JSON_LIMIT:
        raise Corrupt(path, f"its {what} is longer than {JSON_LIMIT} bytes")
    try:
        return _Fields(path, what, load_json(data), is_for_system=is_for_system)
    except ValueError as error:
        raise Corrupt(path, f"its {what} cannot be read") from error


def parse_header(path: str, data: bytes) -> Header:
    """Return the header in `data` (JSON); `path` is for messages. Raises Corrupt or NewerFormat."""
    fields = _load(path, "header", data)
    number = fields.integer("format")
    if number > FORMAT:
        raise NewerFormat(path, number, FORMAT)
    if number < 1:
        raise Corrupt(path, f"its header has format {number}, which does not exist")
    python = fields.object("python")
    return Header(
        format=number,
        tool=fields.text("tool"),
        created=fields.text("created"),
        name=fields.text("name"),
        kind=fields.choice("kind", KINDS),
        target=fields.text("target"),
        argv=fields.list("argv", str),
        orig_argv=fields.list("orig_argv", str),
        cwd=fields.text("cwd"),
        umask=fields.optional("umask", 0o777),
        commit=fields.form("commit", _COMMIT),
        path0=None if fields.data.get("path0") is None else fields.text("path0"),
        env=fields.variables("env"),
        hash_seed=fields.integer("hash_seed", 0, (1 << 32) - 1),
        chaos=fields.optional("chaos"),
        collector=_collector(fields),
        ticks=fields.choice("ticks", (CHECKS,)),
        real_ids=fields.truth("real_ids"),
        durable=fields.truth("durable"),
        python=PythonBuild(
            version=python.text("version"),
            hexversion=python.integer("hexversion", 0, (1 << 32) - 1),
            executable=python.text("executable"),
            prefix=python.text("prefix"),
            cache_tag=python.form("cache_tag", _NAME),
            soabi=python.form("soabi", _NAME),
            flags=python.list("flags", str),
        ),
        platform=fields.text("platform"),
        stdio=_streams(fields),
        signals=_signals(fields),
        fds=_descriptors(fields),
        gates=_gates(path, fields),
        gates_digest=fields.text("gates_digest"),
        group=fields.text("group"),
        process=fields.integer("process", 0, MOST_NUMBER),
        outputs=fields.list("outputs", str),
        branch=_branch(fields),
        raw=MappingProxyType(fields.data),
    )


def _branch(fields: _Fields) -> Branch | None:
    if fields.data.get("branch") is None:
        return None
    found = _sound_branch(fields.object("branch"))
    if not found.process < fields.integer("process"):
        raise fields.wrong("branch", "has a parent that is not older")
    return found


def _sound_branch(fields: _Fields) -> Branch:
    numbers = {name: fields.integer(name, 1 if name in ("process", "event") else 0) for name in Branch._fields}
    if min(numbers["log"], numbers["world"]) < LOG_HEADER:
        raise fields.wrong("log", "is shorter than a header")
    return Branch(**numbers)


def parse_branch(path: str, data: object) -> tuple[int, Branch]:
    """Return the number of a forked child and where it leaves its parent, from its branch.json. Raises Corrupt."""
    fields = _Fields(path, "branch.json", data)
    number = fields.integer("process", 1, MOST_NUMBER)
    parent = fields.integer("parent", 1, MOST_NUMBER)
    # A parent is older than its children: so no recording is its own ancestor.
    if parent >= number:
        raise fields.wrong("parent", "is not older")
    fields.data["process"] = parent
    return number, _sound_branch(fields)


def _collector(fields: _Fields) -> tuple[int, ...]:
    counts = fields.list("collector", int)
    if len(counts) not in (0, 3, 4) or not all(0 <= count < 1 << 31 for count in counts):
        raise fields.wrong("collector", "is not a list of three or four counts")
    return counts


def _streams(fields: _Fields) -> tuple[str, ...]:
    kinds = fields.list("stdio", str)
    if "stdio" in fields.data and (len(kinds) != 3 or not all(kind in STREAMS for kind in kinds)):
        raise fields.wrong("stdio", "does not have three known kinds of streams")
    return kinds


def _signals(fields: _Fields) -> MappingProxyType[str, str]:
    found = fields.texts("signals")
    for number, state in found.items():
        if not _NUMBER.fullmatch(number) or int(number) > MOST_SIGNAL or not _WORD.fullmatch(state):
            raise fields.wrong("signals", "has an invalid signal number")
    return found


def _descriptors(fields: _Fields) -> tuple[int, ...]:
    found = fields.list("fds", int)
    if not all(2 < fd < MOST_FDS for fd in found):
        raise fields.wrong("fds", "has an invalid descriptor number")
    return found


def _gates(path: str, fields: _Fields) -> tuple[GateRow, ...]:
    rows = fields.list("gates", dict)
    if len(rows) > MOST_GATES:
        raise fields.wrong("gates", "has too many rows")
    return tuple(_gate(path, row) for row in rows)


def _gate(path: str, row: dict[str, Any]) -> GateRow:
    name: Any = row.get("name")
    shape: Any = row.get("shape")
    kind: Any = row.get("kind")
    # There are 700 rows; parsing them is most of opening a recording. Rows that are not sound go to the checks below.
    is_typed = type(name) is str and type(kind) is str and type(shape) is int
    if is_typed and 0 <= shape < 256 and _GATE.fullmatch(name) and _WORD.fullmatch(kind):
        return GateRow(name, shape, kind)
    fields = _Fields(path, "gate table", row)
    return GateRow(fields.form("name", _GATE), fields.integer("shape", 0, 255), fields.form("kind", _WORD))


def parse_end(path: str, data: bytes) -> End:
    """Return the end in `data` (JSON); `path` is for messages. Raises Corrupt."""
    fields = _load(path, "end", data, is_for_system=False)  # strings from the program may contain anything
    return End(
        status=fields.integer("status", -MOST_SIGNAL, 255),
        seconds=fields.real("seconds"),
        cpu_seconds=fields.real("cpu_seconds"),
        exception=fields.form("exception", _TYPE),
        reason=None if fields.data.get("reason") is None else fields.text("reason"),
        events=fields.integer("events"),
        notes=tuple(_note(path, row) for row in fields.list("notes", dict)),
        packages=fields.texts("packages"),
        sources=fields.texts("sources"),
        ok=fields.truth("ok"),
        raw=MappingProxyType(fields.data),
    )


def _note(path: str, row: dict[str, Any]) -> Note:
    fields = _Fields(path, "notes", row, is_for_system=False)
    return Note(fields.text("kind"), fields.text("text"), fields.integer("count"))
