"""`replaydbg verify`: read every byte of a recording, check every checksum and decode every record."""

from __future__ import annotations

import argparse

from replaydbg.cli.common.output import add_json, add_recording, open_named, print_json, print_problems
from replaydbg.render.measures import show_size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Verify the recording; return 1 if anything in it is damaged or missing."""
    with open_named(args.recording) as recording:
        checked = recording.check()
        is_sound = not recording.damage
        if args.json:
            facts = {"recording": recording.name, "path": str(recording.path), "sound": is_sound, "ok": recording.ok}
            facts["durable"] = recording.header.durable
            facts |= {"events": checked.events, "world_answers": checked.answers, "sections": checked.sizes}
            print_json(facts | {"problems": list(recording.problems)})
        elif is_sound:
            size = show_size(sum(checked.sizes.values()))
            print(f"{recording.name} is sound: {checked.events:,} events, {size} in {len(checked.sizes)} sections.")
            if recording.header.durable:
                print("It was recorded to survive power loss.")
        else:
            print(f"{recording.name} is damaged: {checked.events:,} events can be read.")
        print_problems(recording)
        return 0 if is_sound else 1
