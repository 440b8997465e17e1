"""`replaydbg record`: runs a program and records it; the exit code is the program's own."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from replaydbg.cli.main import SCHEMA_VERSION
from replaydbg.config import load_settings
from replaydbg.errors import UsageError
from replaydbg.record import RecordResult, record

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = "replaydbg record [options] [--] (prog.py | -m module | -c code | console-script) [args ...]"
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where it goes (default: the store)")
    parser.add_argument("--max-size", metavar="SIZE", help="stop recording there, such as 2G; the program goes on")
    parser.add_argument("-q", "--quiet", action="store_true", default=None, help="say nothing at the end")
    parser.add_argument("--json", action="store_true", help="say what was recorded as JSON on stderr")
    parser.epilog = "Options of the interpreter, such as -O or -X dev, stand behind -- and before the program."


def split_words(parser: argparse.ArgumentParser, words: list[str]) -> tuple[list[str], list[str]]:
    """Split a command line into our own options and the program with all that is behind it."""
    options = {name: action for action in parser._actions for name in action.option_strings}
    index = 0
    while index < len(words):
        word = words[index]
        if word == "--":
            return words[:index], words[index + 1 :]
        if not word.startswith("-") or word in ("-", "-m", "-c"):
            break
        # `--output=FILE`, and `-oFILE`, have their value in the same word.
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        if name not in options:
            # `-mpdb` and `-c...` in one word are the interpreter's way to write them.
            if name in ("-m", "-c"):
                break
            parser.error(f"record has no option {word!r}; options of the interpreter stand behind --")
        index += 2 if word == name and options[name].nargs is None else 1
    return words[:index], words[index:]


def run(args: argparse.Namespace) -> int:
    """Record; returns the program's exit code, or ends by the signal that ended the program."""
    quiet = load_settings({"quiet": args.quiet}).quiet
    result = record(args.program, output=args.output, max_size=_bytes(args.max_size))
    if args.json:
        print(json.dumps(_as_json(result)), file=sys.stderr)
    elif not quiet:
        _say(result)
    elif result.problem:
        print(f"replaydbg: {result.path}: {result.problem}.", file=sys.stderr)
    return end_like(result.status)


def end_like(status: int) -> int:
    """Return the exit code for a program's status; a signal ends us too: a shell sees what it would have seen."""
    if status >= 0:
        return status
    sys.stdout.flush()
    sys.stderr.flush()
    if -status in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGPIPE, signal.SIGALRM):
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return 128 - status


def _bytes(text: str | None) -> int | None:
    if text is None:
        return None
    digits = text.strip().lower().removesuffix("b").removesuffix("i")
    unit = digits[-1:] if digits[-1:].isalpha() else ""
    number = digits.removesuffix(unit)
    if unit not in _UNITS or not number.replace(".", "", 1).isdigit():
        raise UsageError(f"--max-size cannot be {text!r}: give bytes, or a number with K, M or G, such as 2G.")
    return int(float(number) * _UNITS[unit])


def _say(result: RecordResult) -> None:
    lines = [f"replaydbg: {result.path} ({_size(result.size)}, {result.events:,} events)"]
    for note in result.notes:
        lines.append(f"replaydbg: {note['kind']}: {note['text']}")
    if result.reason:
        lines.append(f"replaydbg: the recording ends before the program did: {result.reason}.")
    if result.problem:
        lines.append(f"replaydbg: {result.problem}.")
    lines.append(f"replaydbg: replaydbg replay {result.path.stem}")
    print("\n".join(lines), file=sys.stderr)


def _size(size: int) -> str:
    return (
        f"{size:,} bytes"
        if size < 10_000
        else f"{size / 1000:,.0f} kB"
        if size < 10_000_000
        else f"{size / 1e6:,.1f} MB"
    )


def _as_json(result: RecordResult) -> dict[str, object]:
    return {
        "schema_version": SCHEMA_VERSION,
        "path": str(result.path),
        "status": result.status,
        "events": result.events,
        "size": result.size,
        "notes": result.notes,
        "reason": result.reason,
        "problem": result.problem,
    }
