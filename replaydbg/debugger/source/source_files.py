"""Text of the program's source files as recorded; read from disk only if the recording lacks it.

Source that never was in a file, such as a notebook's cell, is what `linecache` has in the replayed program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path, PurePath

from replaydbg.debugger.source.store_targets import StoreTarget, stores_in
from replaydbg.errors import ReplaydbgError, UsageError
from replaydbg.events.nearest_words import nearest
from replaydbg.installed import is_installed
from replaydbg.log.files import DataFile
from replaydbg.log.reader import Recording, open_recording
from replaydbg.log.sources import recorded_source, source_text, what_was_read

LARGEST_SOURCE = 16 << 20
"""Bytes of a file on disk that are taken for a source."""


def is_library(file: str) -> bool:
    """Whether a file is of the standard library, or was installed: not the program's own."""
    return file.startswith("<frozen ") or is_installed(file)


class SourceFiles:
    """Looks source files up by the names that the program's code objects have for them."""

    def __init__(
        self,
        path: Path,
        files: Iterable[str] = (),
        *,
        current: bool = False,
        cached: Callable[[str], str | None] | None = None,
    ) -> None:
        """`path`: the recording; `files`, in which lines ran, show the location of the standard library.

        `current`: today's files come first. `cached` returns the text that the program itself has for a file where the
        session is, or None.
        """
        self._path = path
        self._files = tuple(files)
        self._is_current = current
        self._cached = cached
        self._recording: Recording | None = None
        self._read: dict[str, bytes] | None = None
        self._lines: dict[str, tuple[str, ...]] = {}
        self._stores: dict[str, tuple[StoreTarget, ...]] = {}

    def close(self) -> None:
        """Close the recording; what was read stays."""
        if self._recording is not None:
            self._recording.close()
            self._recording = None

    def file_named(self, name: str) -> str:
        """Return the one file of the program that `name` means: a path, or its end. Raises UsageError."""
        files = set(self._files)
        if name in files:
            return name
        wanted = "/" + name.lstrip("./")
        found = sorted(each for each in files if ("/" + each).endswith(wanted))
        if len(found) != 1:
            if found:
                raise UsageError(f"{name!r} is ambiguous: {', '.join(found[:5])}.")
            hint = nearest(name, [*files, *(PurePath(each).name for each in files)])
            raise UsageError(f"No line of {name!r} ran{hint}.")
        return found[0]

    def lines(self, file: str) -> tuple[str, ...]:
        """Return the lines of `file` without their ends; none if its text is nowhere."""
        if file not in self._lines:
            data = self._content(file)
            if data is None and (text := self._cached(file) if self._cached is not None else None) is None:
                return ()  # the program may have it later
            self._lines[file] = tuple((source_text(data) if data is not None else text or "").splitlines())
        return self._lines[file]

    def text(self, file: str) -> str:
        """Return the text of `file`; empty if it is nowhere."""
        return "\n".join(self.lines(file))

    def is_text_of(self, file: str, path: Path) -> bool:
        """Whether the file at `path` has the text of `file`."""
        data = _from_disk(str(path))
        return data is not None and tuple(source_text(data).splitlines()) == self.lines(file)

    def line(self, file: str, number: int) -> str:
        """Return one line, counted from 1; empty if it is not available."""
        lines = self.lines(file)
        return lines[number - 1] if 1 <= number <= len(lines) else ""

    def stores(self, file: str) -> tuple[StoreTarget, ...]:
        """Return where `file` stores into variables, attributes and items."""
        if file not in self._stores:
            found = stores_in(self.text(file))
            if file not in self._lines:
                return found
            self._stores[file] = found
        return self._stores[file]

    def _content(self, file: str) -> bytes | None:
        recorded = self._recorded(file)
        today = _from_disk(file) if self._is_current or recorded is None else None
        if today is not None and (self._is_current or recorded is None):
            return today
        return recorded if recorded is not None else self._frozen(file)

    def _recorded(self, file: str) -> bytes | None:
        # Opened once: reading it takes 15 ms of CPU time for a recorded test, most of it for the table of gates.
        recording = self._recording = self._recording or open_recording(self._path)
        if self._read is None:
            self._read = what_was_read(recording)
        return recorded_source(recording, file, self._read)  # damaged: then the file on disk has to do

    def _frozen(self, file: str) -> bytes | None:
        """Modules that are built into the interpreter lie in its library too: `<frozen runpy>` is `runpy.py`."""
        if not file.startswith("<frozen "):
            return None
        name = file[len("<frozen ") : -1].replace(".", "/")
        for known in self._files:
            head, mark, rest = known.partition("/lib/python3.")
            if mark and "site-packages" not in rest:
                folder = Path(head + mark + rest.partition("/")[0])
                found = _from_disk(str(folder / f"{name}.py"))
                return found if found is not None else _from_disk(str(folder / name / "__init__.py"))
        return None


def _from_disk(file: str) -> bytes | None:
    """Return a source file. The program chose the name: a pipe would wait for ever, and a device never end."""
    if not Path(file).is_absolute():
        return None
    try:
        with DataFile(Path(file)) as source:
            return source.read(0, LARGEST_SOURCE) if source.size <= LARGEST_SOURCE else None
    except ReplaydbgError:
        return None  # it no longer exists, or is not a file
