"""`replaydbg verify`: read every byte of a recording, check every checksum and decode every record."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.output import add_json, group_or_recording, open_named, print_json, print_problems
from replaydbg.errors import Corrupt, ReplaydbgError, clause
from replaydbg.events.show import printable
from replaydbg.log.group import read_group
from replaydbg.log.reader import Recording, open_recording
from replaydbg.log.used_blocks import RestoredBlocks, restore_blocks
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.measures import show_size
from replaydbg.render.recording_text import listing_text
from replaydbg.store.catalog import DAMAGED, SOUND, Catalog
from replaydbg.store.directory import member_path
from replaydbg.store.selection import FORM


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "recording", help="a recording, or a group of processes: a path, a name such as run-12, or latest"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Verify the recording, or each one of a group; return 1 if anything in it is damaged or missing."""
    directory, path = group_or_recording(args.recording)
    if directory is not None and directory == path:
        facts = _verify_group(directory, as_json=args.json)
    else:
        with open_named(args.recording) as recording:
            facts = _verify(recording, as_json=args.json)
    if args.json:
        print_json(facts)
    _note(directory if directory == path else None, path, facts)
    return 0 if facts["sound"] else 1


def _note(directory: Path | None, path: Path, facts: JsonObject) -> None:
    """Note in the catalog what was found of a recording of the store, or of a whole group in it."""
    store = the_store()
    place = directory if directory is not None else path
    if place.parent.resolve() != store.directory.resolve():
        return
    processes = facts.get("processes")
    found = processes if isinstance(processes, list) else [facts]
    is_whole = all(each["ok"] for each in found if each["sound"])
    if facts["sound"] and not is_whole:
        return  # it has no end, as every listing finds out
    validity = SOUND if facts["sound"] else DAMAGED
    name = next((each for each, (_, entry) in store.files().items() if entry.name == place.name), None)
    if name is not None:
        when = datetime.now(UTC).strftime(FORM)
        Catalog(store, listing_text).note_validity({name: validity}, when)


def _verify_group(directory: Path, *, as_json: bool) -> JsonObject:
    group = read_group(directory)
    found = [
        _verify_process(directory, group.identity, each.number, as_json=as_json)
        for each in group.processes
        if each.recording is not None
    ]
    is_sound = all(each["sound"] for each in found)
    paths = [member_path(directory, each.number) for each in group.processes if each.recording is not None]
    blocks = restore_blocks(directory, (each for each in paths if each.is_file()))
    if not as_json:
        _print_restored(blocks)
    return {
        "path": str(directory),
        "group": group.identity,
        "sound": is_sound,
        "restored_blocks": blocks.restored,
        "unrestored_blocks": blocks.failed,
        "processes": found,
    }


def _print_restored(blocks: RestoredBlocks) -> None:
    if blocks.restored:
        print(f"{_damaged_blocks(blocks.restored)} restored from the store.")
    if blocks.failed:
        print(f"{_damaged_blocks(blocks.failed)} not restored from the store: {printable(clause(blocks.reason))}.")


def _damaged_blocks(count: int) -> str:
    what = "1 damaged or missing block" if count == 1 else f"{count:,} damaged or missing blocks"
    return f"{what} in the group's directory {'was' if count == 1 else 'were'}"


def _verify_process(directory: Path, group: str, number: int, *, as_json: bool) -> JsonObject:
    try:
        with open_recording(member_path(directory, number)) as recording:
            if (recording.header.group, recording.header.process) != (group, number):
                raise Corrupt(str(recording.path), "it is the recording of another process")
            return {"process": number, **_verify(recording, as_json=as_json)}
    except ReplaydbgError as error:
        if not as_json:
            print(f"process {number} cannot be read.")
        print(f"replaydbg: process {number}: {printable(str(error))}", file=sys.stderr)
        return {"process": number, "sound": False, "problems": [str(error)]}


def _verify(recording: Recording, *, as_json: bool) -> JsonObject:
    """Verify a recording, show what was found, and return it."""
    checked = recording.check()
    is_sound = not recording.damage
    if not as_json:
        size = show_size(sum(checked.sizes.values()))
        print(
            f"{recording.name} is sound: {checked.events:,} events, {size} in {len(checked.sizes)} sections."
            if is_sound
            else f"{recording.name} is damaged: {checked.events:,} events can be read."
        )
        if recording.signature is not None:
            print(f"It is signed by {printable(str(recording.signature))}, and is as it was signed.")
        if is_sound and recording.header.durable:
            print("It was recorded to survive power loss.")
    print_problems(recording)
    return {
        "recording": recording.name,
        "path": str(recording.path),
        "sound": is_sound,
        "ok": recording.ok,
        "durable": recording.header.durable,
        "events": checked.events,
        "world_answers": checked.answers,
        "sections": checked.sizes,
        "problems": list(recording.problems),
        "signature": recording.signature.facts() if recording.signature is not None else None,
    }
