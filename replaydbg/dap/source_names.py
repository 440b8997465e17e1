"""The source files of a recording as an editor knows them: by a path if the same text is there, else by a number.

A recording may be of another machine, or of yesterday's text. A file whose text is the recorded one is named by its
path, so that the editor opens its own. For every other one the editor asks for the recorded text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from replaydbg.dap.handles import Numbers
from replaydbg.dap.wire.request_arguments import RequestArguments
from replaydbg.debugger import Session
from replaydbg.debugger.source.source_files import is_library
from replaydbg.errors import UsageError
from replaydbg.events.show import printable


class SourceNames:
    """Translates between the names that code objects have and those of the editor."""

    def __init__(self, mappings: Sequence[tuple[str, str]] = ()) -> None:
        """`mappings`: directories here, each with the one that it was when it was recorded."""
        self._mappings = [(os.path.normpath(here), os.path.normpath(there)) for here, there in mappings]
        self._numbers: Numbers[tuple[str, str]] = Numbers("sourceReference")
        self._known: dict[tuple[str, str], dict[str, Any]] = {}
        self._sessions: dict[str, Session] = {}

    def source(self, session: Session, file: str) -> dict[str, Any]:
        """Return a file of a session for the client."""
        key = (str(session.path), file)
        if key not in self._known:
            self._sessions[key[0]] = session
            self._known[key] = self._described(session, file, key)
        return self._known[key]

    def _described(self, session: Session, file: str, key: tuple[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = {"name": printable(PurePath(file).name or file)}
        if is_library(file):
            found["presentationHint"] = "deemphasize"
        here = self._path_here(session, file)
        if here and session.sources.is_text_of(file, Path(here)):
            return found | {"path": here}
        if not session.sources.lines(file):
            return found | {"presentationHint": "deemphasize", "origin": "its text was not recorded"}
        is_there = bool(here) and Path(here).exists()
        origin = "as recorded: the file has changed since" if is_there else "as recorded: there is no such file here"
        path = {"path": printable(here)} if here else {}
        return found | path | {"sourceReference": self._numbers.of(key), "origin": origin}

    def _path_here(self, session: Session, file: str) -> str:
        """Return the path of a file on this machine, if it is there; empty: it is generated code, in no file."""
        if file.startswith("<"):
            return ""
        path = os.path.normpath(Path(session.header.cwd) / file)
        for here, there in self._mappings:
            if PurePath(path).is_relative_to(there):
                return str(Path(here) / PurePath(path).relative_to(there))
        return path

    def file_named(self, session: Session, source: RequestArguments) -> str:
        """Return the file of a session that a client means. Raises UsageError if no line of it ran."""
        if source.number("sourceReference"):
            return self._numbers.at(source.number("sourceReference"))[1]
        path = source.needed_text("path")
        files = dict.fromkeys(each.file for each in session.index.hits)
        real = os.path.realpath(path)
        for each in files:
            if self._path_here(session, each) in (path, real):
                return each
        for here, there in self._mappings:
            if PurePath(path).is_relative_to(here):
                return session.sources.file_named(str(PurePath(there) / PurePath(path).relative_to(here)))
        return session.sources.file_named(path)

    def text(self, arguments: RequestArguments) -> str:
        """Return the recorded text that a client asks for. Raises UsageError if there is none."""
        number = arguments.object("source").number("sourceReference") or arguments.number("sourceReference")
        path, file = self._numbers.at(number)
        text = self._sessions[path].sources.text(file)
        if not text:
            raise UsageError(f"The text of {file} was not recorded.")
        return text

    def take_over(self, session: Session) -> None:
        """Take a new session of a recording in the place of one that was lost."""
        self._sessions[str(session.path)] = session
