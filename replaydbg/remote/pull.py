"""Fetch a recording from a remote store into the store of this user, or into files of a given name.

It is written under another name first, and each file is checked as far as opening does, so that nothing of it is there
unless all of it is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from replaydbg.errors import Corrupt, NotARecording
from replaydbg.log.edit.group_pack import check_member
from replaydbg.log.edit.standalone import write_standalone
from replaydbg.log.files import named, signature_path
from replaydbg.log.group import read_group
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.group_blocks import share_with_store
from replaydbg.log.sealed.shared import DIRECTORY, load_source
from replaydbg.log.sealed.store_blocks import common_in
from replaydbg.log.used_blocks import needed_blocks
from replaydbg.remote.remote_index import ONE
from replaydbg.remote.remote_recording import RemoteRecording
from replaydbg.store.directory import GROUP, LIVE, PULLED, SEALED, Store
from replaydbg.store.leftovers import remove_leftovers_of

Progress = Callable[[int, int], None]


def pull(recording: RemoteRecording, store: Store, progress: Progress) -> Path:
    """Fetch a recording into the store, under a new name; return its file, or the directory of the group.

    Raises RemoteFailed, Corrupt, and others of opening; OSError.
    """
    store.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    # The name is given last: whoever is killed before leaves nothing that is taken for a recording.
    partial = store.directory / f"{PULLED}{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        _fetch(recording, partial, progress)
        if recording.index.is_group:
            share_with_store(partial, store.directory)
            made = store.create_group()
            partial.rename(made)
            return made
        made = store.create()
        target = made.with_name(made.name.removesuffix(LIVE) + SEALED)
        try:
            _add_to_store(partial, target)
        finally:
            made.rmdir()
        return target
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def pull_to(recording: RemoteRecording, target: Path, progress: Progress) -> Path:
    """Fetch a recording into the file `target`, which needs no other, or a group into that directory; return it.

    Raises as `pull`, and FileExistsError.
    """
    ending = GROUP if recording.index.is_group else SEALED
    target = target.with_name(target.name.removesuffix(GROUP).removesuffix(SEALED) + ending)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    if os.path.lexists(target):
        raise FileExistsError(str(target))
    remove_leftovers_of(target)
    try:
        _fetch(recording, partial, progress)
        if recording.index.is_group:
            partial.rename(target)
        elif (partial / DIRECTORY).is_dir():
            with open_recording(partial / ONE, with_secrets=False) as opened, named(target):
                write_standalone(opened, partial / "whole")
            os.link(partial / "whole", target)
        else:
            _link(partial / ONE, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _fetch(recording: RemoteRecording, folder: Path, progress: Progress) -> None:
    """Write the files of a recording into a new directory, and check that they are those of one."""
    folder.mkdir(mode=0o700)
    recording.write(folder, progress=progress)
    for each in recording.index.files:
        name = each.path.removeprefix(f"{DIRECTORY}/")
        if name != each.path and load_source(name, folder / DIRECTORY) is None:
            # Blocks are named by what they contain: a wrong one must not be taken for that of another recording.
            raise Corrupt(str(recording.address), f"its block {name} has not the content of that name")
    try:
        _check(recording, folder)
    except (Corrupt, NotARecording) as error:  # it names a file that is gone by then
        raise Corrupt(str(recording.address), error.reason) from error


def _check(recording: RemoteRecording, folder: Path) -> None:
    """Raise Corrupt or others of opening unless these are the recordings that the index names, with their blocks."""
    there = {each.path.removeprefix(f"{DIRECTORY}/") for each in recording.index.files}
    group = read_group(folder) if recording.index.is_group else None
    members = {ONE: 0} if group is None else {each.recording: each.number for each in group.processes if each.recording}
    for name, number in members.items():
        with open_recording(folder / name) as member:
            if group is not None:
                check_member(member, group, number)
        missing = needed_blocks(folder / name) - there
        if missing:
            raise Corrupt(str(recording.address), f"its index lacks the block {min(missing)}")


def _add_to_store(partial: Path, target: Path) -> None:
    """Move a recording of one process with its blocks into the store."""
    with common_in(target.parent):  # nobody takes the blocks away before the recording is there
        blocks = target.parent / DIRECTORY
        for path in (partial / DIRECTORY).iterdir() if (partial / DIRECTORY).is_dir() else ():
            path.replace(blocks / path.name)  # that was checked; one that is there may be damaged
        _link(partial / ONE, target)


def _link(path: Path, target: Path) -> None:
    """Give a recording its name, and its signature before: it must not be seen without."""
    if signature_path(path).exists():
        os.link(signature_path(path), signature_path(target))
    try:
        os.link(path, target)
    except BaseException:
        signature_path(target).unlink(missing_ok=True)
        raise
