"""Copy a group of processes with one set of pseudonyms in the place of the secrets of all of them."""

from __future__ import annotations

import os
import random
from contextlib import ExitStack
from pathlib import Path

from replaydbg.groups.opened_group import OpenedGroup, open_member
from replaydbg.log.edit.sharing import write_shared
from replaydbg.log.group import Group, GroupProcess, size_of_group, write_group
from replaydbg.log.live_cuts import LiveCut
from replaydbg.log.reader import Recording, open_recording
from replaydbg.log.sealed.block_places import BlockPlaces
from replaydbg.log.sealed.group_blocks import Common, GroupBlocks
from replaydbg.redaction.proven_copy import Proven, Redacted, write_proven
from replaydbg.redaction.redacted_sections import add_pieces, check_source, secrets_in_recording
from replaydbg.redaction.same_pairs import check_pairs
from replaydbg.secrets.pseudonyms import Pseudonyms, pseudonyms_of
from replaydbg.store.leftovers import working_directory


def redact_group(directory: Path, target: Path, name: str, *, may_derive: bool = False) -> Redacted:
    """Write a copy of the group in `directory` into the directory `target`; recordings never sealed are sealed in it.

    `may_derive`: output may be computed from secrets, and be other bytes in the copy. Raises CannotRedact, with the
    process, and with the line if its run, or otherwise its output, depends on the value of a secret; SecretsMasked
    without the key for the secrets; Corrupt; FileExistsError. Nothing is written then.
    """
    original = OpenedGroup(directory)
    group = original.group
    with ExitStack() as stack:
        members: dict[int, Recording] = {}
        for process in group.processes:
            if process.recording is not None:
                members[process.number] = stack.enter_context(open_member(directory, group, process))
                check_source(members[process.number], f"{name}/{process.number}")
        found = set().union(*map(secrets_in_recording, members.values()))
        pseudonyms = Pseudonyms(pseudonyms_of(found, random.SystemRandom()))
        add_pieces(pseudonyms, members.values())
        with working_directory(target.parent) as folder:
            draft = folder / "draft.rdbgs"
            draft.mkdir(mode=0o700)
            made = _write_members(members, draft, pseudonyms, found, name, may_derive=may_derive)
            write_group(draft, _redacted_rows(group, pseudonyms))
            check_pairs(original, OpenedGroup(draft), name)
            _put_in_place(draft, target)
    return Redacted(size_of_group(target), len(found), made.events, len(members), made.derived)


def _write_members(
    members: dict[int, Recording],
    draft: Path,
    pseudonyms: Pseudonyms,
    secrets: set[bytes],
    name: str,
    *,
    may_derive: bool,
) -> Proven:
    """Write the copy of each member; return what was proven of all of them."""
    events = derived = 0
    has_forked = any(each.header.branch is not None for each in members.values())
    for number, member in members.items():
        proven = draft.with_name(f"{number}.rdbg")
        made = write_proven(member, proven, pseudonyms, secrets, f"{name}/{number}", may_derive=may_derive)
        events, derived = events + made.events, derived + made.derived
        with open_recording(proven) as copy:
            write_shared(copy, draft / f"{number}.rdbg", Common(GroupBlocks(BlockPlaces(draft)), has_forked))
        proven.unlink()
    return Proven(events, derived)


def _redacted_rows(group: Group, pseudonyms: Pseudonyms) -> Group:
    def text(each: str) -> str:
        return pseudonyms.replaced(each.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def row(each: GroupProcess) -> GroupProcess:
        return each._replace(argv=None if each.argv is None else [text(word) for word in each.argv])

    def cut(each: LiveCut) -> LiveCut:
        return each._replace(name=text(each.name))

    return group._replace(
        processes=[row(each) for each in group.processes],
        cuts=tuple(cut(each) for each in group.cuts),
        is_complete=True,
    )


def _put_in_place(draft: Path, target: Path) -> None:
    """Give the copy its name. Raises FileExistsError: it replaces nothing but the empty directory made here."""
    target.mkdir(mode=0o700)
    try:
        os.rename(draft, target)  # noqa: PTH104 - over an empty directory
    except BaseException:
        target.rmdir()
        raise
