"""`replaydbg torture`: record a program once, and let each of its calls fail, one future each."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.program_words import split_words as split_words
from replaydbg.cli.running.fault_sweep import add_fault_arguments, sweep_faults
from replaydbg.cli.running.futures import add_future_arguments
from replaydbg.config import is_fence_wanted
from replaydbg.errors import UsageError
from replaydbg.futures.faults.first_call import first_call
from replaydbg.log.reader import open_recording
from replaydbg.record import record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = "replaydbg torture [options] [--] (prog.py | -m module | -c code | console-script) [args ...]"
    parser.add_argument("-n", "--count", type=int, metavar="N", help="make at most N futures (default: 1000)")
    add_fault_arguments(parser, default="all")
    add_future_arguments(parser)
    parser.epilog = "Put interpreter options, such as -O or -X dev, after -- and before the program."


def run(args: argparse.Namespace) -> int:
    """Record the program, and try the faults; return 0 if no future failed, 1 if one did, 3 if none has a verdict."""
    if not is_fence_wanted():
        raise UsageError("--no-fence cannot be used here: without the fence, futures could reach the outside.")
    result = record(args.program)
    name = the_store().name_of(result.path)
    if not args.quiet:
        print(f"replaydbg: recorded {name} (exit code {result.status})", file=sys.stderr)
    with open_recording(result.path) as recording:
        event = first_call(recording)
    return sweep_faults(args, Path(result.path), event)
