"""The catalog: a SQLite file in the store with the facts about each recording, so that they are read once.

All but the results of `verify` can be read again: a missing, damaged or foreign file is made anew, and where none can
be written, each listing reads the recordings. A row is valid while its file has the same inode, size and time of
modification. Live directories are read each time.

The database is in memory, read from the file and written to it as a whole. SQLite itself would open a journal beside
the file, and do in the name of this user what a journal that came with somebody's store says. The file ends in a mark
of this user: recordings are removed by what is in it, so nothing is believed that is damaged or of somebody else.

This module is longer than others because the columns, what fills them and what checks them change together.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, TypeVar, get_type_hints
from zlib import crc32

from replaydbg import __version__
from replaydbg.errors import NewerFormat, NotARecording, ReplaydbgError, SignatureRefused, UnfinishedGroup
from replaydbg.log.allowance import load_json
from replaydbg.log.group import read_group, size_of_group
from replaydbg.log.reader import Recording, open_recording
from replaydbg.log.unfinished_group import check_finished
from replaydbg.store.directory import GROUP, LIVE, SEALED, Store, StoredRecording, number_of
from replaydbg.store.marked import marked, unmarked
from replaydbg.store.own_files import OwnFiles
from replaydbg.store.tags import is_key, key_of

Result = TypeVar("Result")

DIRECTORY, FILE = ".catalog", "recordings.sqlite"
"""Its place in the store."""

UNCHECKED, SOUND, CUT, DAMAGED = VALIDITIES = ("unchecked", "sound", "cut", "damaged")
"""The validity of a recording: nobody has read all of it; all of it is as it was written; it has no end, or of a
group one has none, because its program was killed with its recorder, or still runs; something in it is damaged or
missing.
"""

FOREIGN, NEWER, BROKEN, UNVERIFIED = "foreign", "newer", "broken", "unverified"
"""Why a recording cannot be read: it is none; a newer replaydbg made it; it is damaged; its signature does not match,
or cannot be verified on this machine.
"""

_VERSION = crc32(f"2 {__version__}".encode()) >> 1
"""Of the table and of the lines in it. A file with another one is made anew."""
MARKED_AS = b"rdbg catalog"
"""The kind of file for its mark."""
_MOST = 1 << 30
"""Bytes of the file: more than two million recordings."""
_RACY = 1_000_000_000
"""Nanoseconds. A directory that was changed so shortly before it was read may have changed again at the same time."""
_FEW = 1_000
"""Up to so many recordings, each file is looked at; of more, a directory that has not changed is believed."""
_LEAST = -(1 << 63)
"""The smallest whole number of SQLite."""
_PATIENCE = 1.0
"""Seconds to wait for another command that writes the catalog."""
_LONGEST_COMMAND = 64 << 20
"""Characters: a command line of Linux has at most 6 MiB, and in JSON a byte can take six."""


class CatalogRow(NamedTuple):
    """The facts about one recording, or about a group of processes."""

    name: str
    """Such as `run-12`."""
    path: str
    """The sealed file, the live directory, or that of the first process of a group."""
    created: str
    """The time of the recording: ISO 8601, UTC."""
    command: str
    """The program and its arguments as they were given: a JSON list."""
    commit: str
    """The commit of the program's repository; empty: unknown."""
    status: int | None
    """The program's exit code, or minus the number of the signal that ended it; None: the recording is not sealed."""
    exception: str
    """The type of the exception that ended it; empty: there was none, or it is unknown."""
    events: int
    """Number of events; of a group that of its first process."""
    seconds: float | None
    """The run's duration; None: the recording is not sealed."""
    size: int
    """Bytes on the disk."""
    python: str
    """The version of Python, such as 3.11.7."""
    processes: int
    """Number of recorded processes."""
    parent: str
    """The recording that it continues; empty: none."""
    cwd: str
    """The directory in which the program was started."""
    run: str
    """The key of its tags, see `tags.key_of`; empty: it cannot be read."""
    live: int
    """Number of recordings that are not sealed: of a group there can be several."""
    problem: str
    """Why it cannot be read, as a sentence; empty: it can."""
    unreadable: str = ""
    """The same as one of FOREIGN, NEWER, BROKEN and UNVERIFIED."""
    validity: str = UNCHECKED
    """One of VALIDITIES."""
    checked: str = ""
    """When that was found: ISO 8601, UTC; empty: never."""


def command_words(command: str) -> list[str]:
    """Return a program and its arguments from their column; none if somebody has written something else there."""
    return parsed_command(command) or []


def parsed_command(command: str) -> list[str] | None:
    """Return a program and its arguments from a text that may come from anybody; None: it has something else."""
    if len(command) > _LONGEST_COMMAND:
        return None
    try:
        found = load_json((command or "[]").encode())
    except ValueError:
        return None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        return None
    return [str(each) for each in found]


def command_text(command: str) -> str:
    """Return a program and its arguments as a shell takes them, from their column."""
    return shlex.join(command_words(command))


_COLUMNS = [f'"{each}"' for each in CatalogRow._fields]  # `commit` is a word of SQL
_TABLES = (
    f"CREATE TABLE recordings (place, line, stamp, {', '.join(_COLUMNS)}, PRIMARY KEY (name)) WITHOUT ROWID",
    "CREATE TABLE directory (changed, read)",
)
"""`place` is the order, `line` the text in a listing, `stamp` what a row is valid for."""
_INSERT = f"INSERT OR REPLACE INTO recordings VALUES ({', '.join('?' * (3 + len(_COLUMNS)))})"
_LINES = "SELECT group_concat(line, char(10)) FROM (SELECT line FROM recordings ORDER BY place, name)"
_SELECT = f"SELECT stamp, {', '.join(_COLUMNS)} FROM recordings"
_TYPES = [
    {str: (str,), int: (int,)}.get(kind, (int, type(None)) if kind == int | None else (int, float, type(None)))
    for kind in get_type_hints(CatalogRow).values()
]
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class _Foreign(Exception):
    """The database has something else than this version writes: somebody has changed it."""


class _Known(NamedTuple):
    """A row of the database."""

    stamp: str
    row: CatalogRow


class Catalog:
    """The facts about all recordings of a store."""

    def __init__(self, store: Store, show: Callable[[CatalogRow], str]) -> None:
        """Take a store, and what makes a line of a row. Nothing is read or written yet."""
        self._store, self._show = store, show

    def rows(self) -> list[CatalogRow]:
        """Return the facts about all recordings, in the order of `Store.list`; reads those that are new or changed."""
        files = self._store.files()

        def read(database: sqlite3.Connection) -> list[CatalogRow]:
            known = _rows(database)
            if self._refresh(database, files, known):
                known = _rows(database)
            return [self._placed(known[name].row, files[name][0]) for name in files if name in known]

        return self._with(read)

    def selected(self, where: str, values: Sequence[object]) -> list[CatalogRow]:
        """Return the facts about the recordings for which an SQL expression of the columns holds, with its `values`.

        They are in the order of `rows`. What changed in place since the last listing may not have been seen, as in
        `lines`; `rows` sees it.
        """

        def read(database: sqlite3.Connection) -> list[CatalogRow]:
            if not self._is_current(database):
                self._refresh(database, self._store.files(), _rows(database))
            found = _rows(database, f" WHERE {where} ORDER BY place, name", values)
            return [self._placed(each.row, _ending(each.row)) for each in found.values()]

        return self._with(read)

    def _placed(self, row: CatalogRow, ending: str) -> CatalogRow:
        """Return a row with the path that the recording has, whatever the file says: somebody may have written there,
        or moved the store.
        """
        plain = f"{self._store.directory}/{row.name}{ending}"
        if row.path == plain and ending != GROUP:  # without the slower paths of pathlib, for thousands of rows
            return row
        path = str(self._store.stored(row.name, ending).path)
        return row if row.path == path else row._replace(path=path)

    def lines(self) -> str:
        """Return the line of each recording, in the order of `rows`, without making the rows."""

        def read(database: sqlite3.Connection) -> str:
            if not self._is_current(database):
                self._refresh(database, self._store.files(), _rows(database))
            (found,) = database.execute(_LINES).fetchone()
            if not isinstance(found, str | None) or (found and _UNPRINTABLE.search(found)):
                raise _Foreign
            return found or ""

        return self._with(read)

    def note_validity(self, validities: Mapping[str, str], when: str) -> None:
        """Note what reading all bytes of some recordings, by name, has shown, at a time (ISO 8601, UTC)."""
        files = {each: found for each, found in self._store.files().items() if each in validities}

        def write(database: sqlite3.Connection) -> None:
            self._refresh(database, files, _rows(database), forget=False)
            rows = _rows(database)
            for name, validity in validities.items():
                known = rows.get(name)
                if known is not None and not known.row.unreadable:
                    row = known.row._replace(validity=validity, checked=when)
                    database.execute(_INSERT, self._inserted(known.stamp, row))

        self._with(write)

    def _inserted(self, stamp: str, row: CatalogRow) -> tuple[object, ...]:
        return (number_of(row.name), _stored(self._show(row)), stamp, *map(_stored, row))

    def _is_current(self, database: sqlite3.Connection) -> bool:
        """Whether the rows are those of the files, as far as the directory's time of change tells."""
        known = database.execute("SELECT changed, read FROM directory").fetchone()
        (count,) = database.execute("SELECT count(*) FROM recordings").fetchone()
        if known is None or count <= _FEW or not all(type(each) is int for each in known):
            return False
        if known[0] + _RACY > known[1]:
            return False
        (moving,) = database.execute("SELECT count(*) FROM recordings WHERE stamp = ''").fetchone()
        return not moving and known[0] == _changed(self._store.directory)

    def _refresh(
        self,
        database: sqlite3.Connection,
        files: Mapping[str, tuple[str, os.DirEntry[str]]],
        rows: Mapping[str, _Known],
        *,
        forget: bool = True,
    ) -> bool:
        """Read what is new or changed, and forget what is gone; return whether that was anything."""
        times = _changed(self._store.directory), time.time_ns()
        changed = []
        for name, (ending, entry) in files.items():
            stamp = _stamp(ending, entry)
            if not stamp or name not in rows or rows[name].stamp != stamp:
                changed.append((stamp, self._store.stored(name, ending)))
        gone = [(_stored(name),) for name in rows if name not in files] if forget else []
        for stamp, stored in changed:
            row = read_row(stored)
            if row.problem and not os.path.lexists(files[stored.name][1].path):
                gone.append((_stored(stored.name),))  # it was removed since the directory was listed
                continue
            # Whether a signature can be verified shows neither the recording's file nor its time.
            database.execute(_INSERT, self._inserted("" if row.unreadable == UNVERIFIED else stamp, row))
        database.executemany("DELETE FROM recordings WHERE name = ?", gone)
        database.execute("DELETE FROM directory")
        if forget:
            database.execute("INSERT INTO directory VALUES (?, ?)", times)
        return bool(changed or gone)

    # ---- the file ----

    def _with(self, act: Callable[[sqlite3.Connection], Result]) -> Result:
        """Do something with the database, and write it if that has changed it and nobody else writes it."""
        files = OwnFiles(self._store.directory / DIRECTORY)
        if not self._store.directory.is_dir():
            return _done(act, None)[0]
        try:
            with files.locked("lock", seconds=_PATIENCE) as is_ours:
                result, data = self._read(act, files)
                file = marked(data, MARKED_AS) if data is not None and is_ours else None
                if file is not None:
                    with suppress(OSError):  # the disk may be full
                        files.write(FILE, file)
                return result
        except OSError:  # it cannot be written
            return self._read(act, files)[0]

    def _read(self, act: Callable[[sqlite3.Connection], Result], files: OwnFiles) -> tuple[Result, bytes | None]:
        try:
            data = files.read(FILE, _MOST)
        except OSError:
            data = None
        try:
            return _done(act, unmarked(data, MARKED_AS) if data else None)
        except (sqlite3.DatabaseError, _Foreign):
            return _done(act, None)


def _done(act: Callable[[sqlite3.Connection], Result], data: bytes | None) -> tuple[Result, bytes | None]:
    """Do something with the database in a file's bytes, or a new one; return also its bytes if they are others then.

    Raises sqlite3.DatabaseError or _Foreign if it is no catalog.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        if data:
            connection.deserialize(data)
            _check(connection)
        else:
            _make(connection)
        connection.execute("PRAGMA secure_delete = ON")
        before = connection.total_changes
        connection.execute("BEGIN")
        result = act(connection)
        # Of one that is being recorded: its secrets are not masked yet, and it is read again each time.
        connection.execute("UPDATE recordings SET command = '' WHERE stamp = '' AND command != ''")
        connection.execute("COMMIT")
        return result, connection.serialize() if not data or connection.total_changes > before else None


def _make(connection: sqlite3.Connection) -> None:
    for table in _TABLES:
        connection.execute(table)
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def _check(connection: sqlite3.Connection) -> None:
    """Raise _Foreign if it is of another version, or has something else than the two tables: a view, a trigger."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != _VERSION or {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema")} != set(_TABLES):
        raise _Foreign


def _stored(value: object) -> object:
    """Return a value as the database has it: a text that is no Unicode, such as a file's odd name, as bytes.

    A whole number that it has no room for, which only a damaged recording has, becomes the nearest one that it has.
    """
    if isinstance(value, int):
        return min(max(value, _LEAST), -_LEAST - 1)
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogatepass")
    return value


def _loaded(values: tuple[object, ...]) -> list[object]:
    """Return the values of a row. Raises _Foreign if one has another type than this version writes."""
    found: list[object] = []
    for value, types in zip(values, (*((str,),), *_TYPES), strict=True):
        if isinstance(value, bytes) and str in types:
            value = value.decode("utf-8", "surrogatepass")
        if type(value) not in types:
            raise _Foreign
        found.append(value)
    return found


def _changed(directory: Path) -> int:
    """Return when a file of a directory was last added, removed or renamed, in nanoseconds; 0: unknown."""
    try:
        return directory.stat().st_mtime_ns
    except OSError:
        return 0


def _ending(row: CatalogRow) -> str:
    """Return how the name of a recording's file or directory ends. Raises _Foreign."""
    folder, _, last = row.path.rpartition("/")
    endings = {row.name + SEALED: SEALED, row.name + LIVE: LIVE}
    found = GROUP if folder.endswith(f"/{row.name}{GROUP}") else endings.get(last)
    if found is None:
        raise _Foreign
    return found


def _rows(database: sqlite3.Connection, which: str = "", wanted: Sequence[object] = ()) -> dict[str, _Known]:
    """Return the rows by name; `which` is the rest of the SQL with its values `wanted`. Raises _Foreign."""
    found = {}
    for values in database.execute(_SELECT + which, wanted):
        try:
            stamp, *facts = _loaded(values)
        except UnicodeDecodeError as error:
            raise _Foreign from error
        row = CatalogRow._make(facts)
        if row.run and not is_key(row.run):
            raise _Foreign  # it would name a file with tags
        found[row.name] = _Known(str(stamp), row)
    return found


def _stamp(ending: str, entry: os.DirEntry[str]) -> str:
    """Return what a recording's row is valid for; empty: it is still written, or has to be read for another reason."""
    try:
        if ending == LIVE:
            return ""
        parts = [entry.stat(follow_symlinks=False)]
        if ending == GROUP:  # each of its recordings can be removed or changed by itself
            with os.scandir(entry.path) as members:
                entries = list(members)
            if any(each.name.endswith(LIVE) for each in entries):
                return ""
            found = sorted((each.name, each) for each in entries if each.is_file(follow_symlinks=False))
            parts += [each.stat(follow_symlinks=False) for _, each in found]
    except OSError:
        return ""
    text = " ".join(f"{each.st_ino}:{each.st_size}:{each.st_mtime_ns}" for each in parts)
    return text if len(text) < 200 else blake2b(text.encode(), digest_size=16).hexdigest()


def read_row(stored: StoredRecording) -> CatalogRow:
    """Return the facts about a recording, read from it; if it cannot be read, with why."""
    try:
        return readable_row(stored)
    except ReplaydbgError as error:
        # No program runs in an unfinished group, and nothing can go on from it: `gc` may remove it.
        live = 0 if isinstance(error, UnfinishedGroup) else _live(stored)
        return row_of_problem(stored.name, str(stored.path), error, size=_size(stored), live=live)


def readable_row(stored: StoredRecording) -> CatalogRow:
    """Return the facts about a recording, read from it. Raises the errors of opening, and UnfinishedGroup."""
    if stored.group is not None:
        check_finished(stored.group, stored.name)
    # The catalog has no secrets of command lines: nothing in it is encrypted.
    with open_recording(stored.path, with_secrets=False) as recording:
        return _row(stored, recording)


def row_of_problem(name: str, path: str, error: ReplaydbgError, *, size: int, live: int = 0) -> CatalogRow:
    """Return the row of a recording that cannot be read."""
    kinds = ((NewerFormat, NEWER), (NotARecording, FOREIGN), (SignatureRefused, UNVERIFIED))
    kind = next((kind for error_type, kind in kinds if isinstance(error, error_type)), BROKEN)
    return CatalogRow(
        name=name,
        path=path,
        created="",
        command="",
        commit="",
        status=None,
        exception="",
        events=0,
        seconds=None,
        size=size,
        python="",
        processes=1,
        parent="",
        cwd="",
        run="",
        live=live,
        problem=str(error),
        unreadable=kind,
        validity=UNCHECKED if kind in (NEWER, UNVERIFIED) else DAMAGED,
    )


def _row(stored: StoredRecording, recording: Recording) -> CatalogRow:
    header, end, log, live = recording.header, recording.end, recording.log_header, _live(stored)
    return CatalogRow(
        name=stored.name,
        path=str(stored.path),
        created=header.created,
        command=json.dumps(list(header.command)),
        commit=header.commit,
        status=None if end is None else end.status,
        exception="" if end is None else end.exception,
        events=end.events if end is not None else log.crossings if log is not None else 0,
        seconds=None if end is None else end.seconds,
        size=_size(stored),
        python=header.python.version,
        processes=_processes(stored),
        parent=header.parent,
        cwd=header.cwd,
        run=key_of(header),
        live=live,
        problem="",
        validity=CUT if end is None or live else UNCHECKED,
    )


def _live(stored: StoredRecording) -> int:
    """Return how many recordings are not sealed."""
    if stored.group is None:
        return int(stored.is_live)
    try:
        return sum(each.endswith(LIVE) for each in os.listdir(stored.group))  # noqa: PTH208 - names are enough
    except OSError:
        return 0


def _processes(stored: StoredRecording) -> int:
    if stored.group is None:
        return 1
    return sum(each.recording is not None for each in read_group(stored.group).processes)


def _size(stored: StoredRecording) -> int:
    """Return the size of a recording on disk; 0 if it has been removed meanwhile."""
    try:
        if stored.group is not None:
            return size_of_group(stored.group)
        if not stored.is_live:
            return stored.path.lstat().st_size
        with os.scandir(stored.path) as entries:
            return sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in entries)
    except OSError:
        return 0
