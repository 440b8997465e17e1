"""`replaydbg info`: show how a recording's program was started, and how it ended."""

from __future__ import annotations

import argparse

from replaydbg.cli.common.fetched_names import with_addresses
from replaydbg.cli.common.output import add_json, add_recording, open_named, print_json, print_problems
from replaydbg.events.show import printable
from replaydbg.log.reader import Recording
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.recording_text import recording_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("--env", action="store_true", help="show the recorded environment variables with their values")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the recording's header and end; 1 if the recording is damaged."""
    with open_named(args.recording) as recording:
        if args.json:
            print_json(_facts(recording))
        else:
            for label, text in recording_lines(recording, with_values=args.env):
                print(f"{label + ':' if label else '':<11} {printable(with_addresses(text))}")
        print_problems(recording)
        return 1 if recording.damage else 0


def _facts(recording: Recording) -> JsonObject:
    log = recording.log_header
    return {
        "name": recording.name,
        "path": str(recording.path),
        "sealed": not recording.is_live,
        "ok": recording.ok,
        "problems": list(recording.problems),
        "signature": recording.signature.facts() if recording.signature is not None else None,
        "header": dict(recording.header.raw),
        "end": None if recording.end is None else dict(recording.end.raw),
        "log": None if log is None else log._asdict() | {"stopped": log.stopped.name.lower()},
        "sections": {name: recording.size(name) for name in recording.sections},
    }
