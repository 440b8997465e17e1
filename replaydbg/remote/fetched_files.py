"""Open recordings by their addresses: their files are in a temporary directory, as long as this process runs."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from replaydbg.errors import NoSuchRecording
from replaydbg.log import files
from replaydbg.remote.address import Address, parse_address, shown
from replaydbg.remote.remote_recording import PartlyThere, RemoteRecording
from replaydbg.store.directory import GROUP, SEALED
from replaydbg.store.process_check import exists


def on_demand(text: str) -> Path:
    """Return the path of the recording at an address, of which each part is fetched when it is read.

    Raises as `RemoteRecording`, here and where it is read.
    """
    address = parse_address(text)
    folder, parts, recording = _parts(address.store, address.name)
    if recording.index.is_signed:  # a signature is one of whole files, and verified by another program
        parts.fetch(range(len(recording.index.pieces)))
    return _path(address, folder, recording)


def fetched(text: str, progress: Callable[[int, int], None] = lambda done, total: None) -> Path:
    """Return the path of the recording at an address, all of which is there. Raises as `RemoteRecording`, OSError.

    `progress` is called with the bytes that were fetched, and those that were missing.
    """
    address = parse_address(text)
    folder, parts, recording = _parts(address.store, address.name)
    parts.fetch(range(len(recording.index.pieces)), progress)
    return _path(address, folder, recording)


def fetched_group(text: str, progress: Callable[[int, int], None] = lambda done, total: None) -> Path | None:
    """Return the directory of the group at an address, all of which is there; None: it is no group, or one process."""
    address = parse_address(text)
    folder, _, recording = _parts(address.store, address.name)
    if not recording.index.is_group or address.process:
        return None
    fetched(text, progress)
    return folder


def _path(address: Address, folder: Path, recording: RemoteRecording) -> Path:
    if not recording.index.is_group:
        if address.process:
            raise NoSuchRecording(str(address), shown(address.store))
        return folder / f"{address.name}{SEALED}"
    path = folder / f"{address.process or 1}{SEALED}"
    if not path.exists():
        raise NoSuchRecording(str(address), shown(address.store))
    return path


_addresses: dict[str, str] = {}
"""For each directory of fetched files the address of its recording."""


def with_addresses(text: str, written: Callable[[str], str] = str) -> str:
    """Return a text that names fetched files with their addresses instead: the files are gone when we end.

    `written` says how the text has paths and addresses.
    """
    for folder, address in ((written(one), written(other)) for one, other in _addresses.items()):
        if folder in text:
            text = re.sub(rf"{re.escape(folder)}/([0-9]+){re.escape(SEALED)}(?![\w.-])", rf"{_plain(address)}/\1", text)
            text = text.replace(f"{folder}/{address.rpartition('/')[2]}{SEALED}", address).replace(folder, address)
    return text


def _plain(text: str) -> str:
    """Return a text as a replacement of `re.sub` that stands for itself."""
    return text.replace("\\", "\\\\")


@cache
def _parts(store: str, name: str) -> tuple[Path, PartlyThere, RemoteRecording]:
    """Return the directory with the files of a recording, and what fetches them. It is removed when we end."""
    recording = RemoteRecording(Address(store, name))
    root = Path(_temporary().name)
    folder = root / f"{len(list(root.iterdir()))}" / (f"{name}{GROUP}" if recording.index.is_group else name)
    folder.mkdir(parents=True, mode=0o700)
    _addresses[str(folder)] = str(recording.address)
    parts = PartlyThere(recording, folder, one=f"{name}{SEALED}")
    for each in recording.index.files:
        files.fetchers[str(parts.path_of(each.path))] = partial(parts.need, each.path)
    return folder, parts, recording


_NAME = re.compile(r"replaydbg-remote-([0-9]+)-.*")


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    _remove_those_left()
    return tempfile.TemporaryDirectory(prefix=f"replaydbg-remote-{os.getpid()}-")


def _remove_those_left() -> None:
    """Remove the directories of processes of this user that were ended by a signal."""
    with suppress(OSError):
        for path in Path(tempfile.gettempdir()).iterdir():
            match = _NAME.fullmatch(path.name)
            if match and path.lstat().st_uid == os.getuid() and not exists(int(match[1])):
                shutil.rmtree(path, ignore_errors=True)


def remove_fetched() -> None:
    """Remove what was fetched: this process is about to end by a signal, and runs nothing at its end."""
    if _temporary.cache_info().currsize:
        _temporary().cleanup()
