"""`replaydbg replay`: run a recording again, verified; print what the program printed and end as it ended."""

from __future__ import annotations

import sys

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.origin_warning import warn_if_foreign
from replaydbg.cli.common.standard_streams import open_closed_streams
from replaydbg.config import is_notice_unwanted, load_settings
from replaydbg.errors import NoSuchMoment, UsageError
from replaydbg.launch.endings import end_like
from replaydbg.replay import ReplayResult, replay
from replaydbg.store.directory import GROUP

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from replaydbg.replay.clock import Orders


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", help="a path, a name such as run-12, or latest; of a group all processes")
    parser.add_argument(
        "--to",
        metavar="EVENT[:LINES]",
        help="stop before this event, or that many lines after it, and show the position",
    )
    parser.add_argument(
        "--current-source", action="store_true", help="run today's source files instead of the recorded ones"
    )
    parser.add_argument(
        "--until-outcome",
        action="store_true",
        help="with --current-source: report whether the edited code still fails on the recorded inputs",
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", default=None, help="print nothing unless the replay diverges"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the outcome as JSON on stdout; what the program prints goes to stderr",
    )


def run(args: argparse.Namespace) -> int:
    """Replay; return the recorded exit code, 4 at a divergence, or 6 if the recording ends before the program did.

    The name of a group stands for all of its processes.
    """
    open_closed_streams()
    settings = load_settings({"quiet": args.quiet})
    store = the_store()
    group = store.find_group(args.recording)
    if group is not None:
        # Imported here: most recordings are of one process.
        from replaydbg.cli.running.replay_group import run_group

        is_quiet = settings.quiet or is_notice_unwanted(args.quiet)
        return run_group(args, group, group.name.removesuffix(GROUP), quiet=is_quiet)
    path = store.resolve(args.recording)
    event, step = _moment(args.to)
    warn_if_foreign(path, args.recording, quiet=is_notice_unwanted(args.quiet))
    if args.until_outcome:
        return _until_outcome(args, path, store.name_of(path), quiet=settings.quiet)
    result = replay(
        path,
        name=store.name_of(path),
        current_source=args.current_source,
        # If fewer lines follow the event, the replay stops before the next one.
        stop_at=event + 1 if step else event,
        clock=_clock(event, step),
        stdout=2 if args.json else None,
    )
    if event > result.events and result.is_whole and not result.stack:
        raise NoSuchMoment(args.to, f"the recording has {result.events:,} events")
    if args.json:
        return _print_json(result)
    if result.divergence is not None:
        raise result.divergence
    if (event or step) and result.stack:
        _print_position(result, step)
        return 0
    if not settings.quiet:
        _print_notes(result)
    return end_like(result.status) if result.is_whole else result.exit_code


def _print_json(result: ReplayResult) -> int:
    # Imported here: it takes 20 ms, which other replays need not pay.
    from replaydbg.cli.common.output import print_json
    from replaydbg.render.json_data.runs_json import replay_facts

    print_json(replay_facts(result))
    return result.exit_code


def _print_position(result: ReplayResult, step: int) -> None:
    # Imported here: a replay without --to does not need it.
    from replaydbg.render.replay_text import position_lines

    print("\n".join(position_lines(result, step)), file=sys.stderr)


def _print_notes(result: ReplayResult) -> None:
    # Imported here: most replays print none.
    from replaydbg.render.replay_text import note_lines

    for line in note_lines(result):
        print(f"replaydbg: {line}", file=sys.stderr)


def _until_outcome(args: argparse.Namespace, path: Path, name: str, *, quiet: bool) -> int:
    """Return 0 if the edited program no longer fails, 1 if it does, 125 if the replay is inconclusive."""
    if not args.current_source or args.to is not None:
        raise UsageError("--until-outcome needs --current-source, and cannot be combined with --to.")
    # Imported here: other replays need neither.
    from replaydbg.cli.running.check import show_verdict
    from replaydbg.replay.edited_code import Judge

    judge = Judge(path, name, stdout=2 if args.json else None)
    return show_verdict(judge.judge(), as_json=args.json, quiet=quiet)


def _moment(text: str | None) -> tuple[int, int]:
    """Return an event's number and a number of lines after it (0: the moment before the event)."""
    if text is None:
        return 0, 0
    event, colon, step = text.partition(":")
    if not event.isdigit() or (colon and not step.isdigit()) or (int(step) if colon else int(event)) < 1:
        raise UsageError(
            f"--to cannot be {text!r}: give the number of an event, or EVENT:LINES, such as 120 or 120:35."
        )
    return int(event), int(step) if colon else 0


def _clock(event: int, step: int) -> Orders | None:
    if not step:
        return None
    # Imported here: a replay without a clock does not need it.
    from replaydbg.replay.clock import Moment, Orders

    return Orders(stop_at=Moment(event, step))
