"""Shared by the commands that move through a recording: opening it with progress, and the options for a place in it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.origin_warning import warn_if_foreign
from replaydbg.cli.common.output import is_terminal
from replaydbg.cli.common.standard_streams import open_closed_streams
from replaydbg.commands.view import View
from replaydbg.config import load_settings
from replaydbg.debugger import Session
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.engine.process_memory import MemoryBudget
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.groups.group_session import GroupSession
from replaydbg.log.files import held
from replaydbg.prompt.screen import Screen
from replaydbg.prompt.terminal import AtOnce, Interrupts, ProgressLine


def add_place(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the place at which an expression is evaluated."""
    parser.add_argument(
        "--at",
        metavar="MOMENT",
        help="evaluate at this moment, such as 120:35 or @end (default: the failure, else the end)",
    )
    parser.add_argument(
        "--frame", type=int, default=0, metavar="N", help="use the Nth frame, counted from the innermost (default: 0)"
    )
    parser.add_argument("--thread", dest="lane", type=int, metavar="N", help="use thread N (default: the running one)")


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Declare `--quiet`."""
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="show no progress, and no notice about a recording that you did not make",
    )


@contextmanager
def opened(
    name: str,
    *,
    current_source: bool = False,
    quiet: bool = False,
    memory: str | None = None,
    interrupts: Interrupts | AtOnce | None = None,
) -> Iterator[View]:
    """Open the recording that the user named, with progress on stderr; yield a view that has printed nothing yet."""
    settings = load_settings({"session_memory": memory})
    open_closed_streams()
    path = the_store().resolve(name)
    with held(path):  # from the first look at it until the session has it open, `gc` must not remove it
        warn_if_foreign(path, name, quiet=quiet)
        # A command that answers one question ends at a Ctrl-C: nothing has to be cancelled with care.
        answers_once = interrupts is None
        interrupts = interrupts or AtOnce()
        progress = ProgressLine(sys.stderr, interrupts.check, is_quiet=quiet)

        def check() -> None:
            progress.clear()
            interrupts.check()

        # Processes of a group share one memory limit.
        budget = MemoryBudget(settings.session_memory)
        opens = partial(Session, progress=progress, current_source=current_source, memory=budget, ahead=True)
        with interrupts.installed():
            with progress.cleared():
                session = opens(path)
            with GroupSession(session, opens) as group, progress.cleared():
                limits = session.limitations
                for each in filter(None, (limits.divergence, limits.doubt) if answers_once else ()):
                    print(f"replaydbg: {printable(each)}", file=sys.stderr)  # a prompt shows it itself
                screen = Screen(sys.stdout, sys.stderr, is_coloured=is_terminal(), check=check)
                yield View(
                    session, screen, group, own_code=OwnCode(settings.my_code), steps_in_own_code=settings.just_my_code
                )
                for notice in group.take_notices():
                    print(f"replaydbg: {printable(notice)}", file=sys.stderr)


@contextmanager
def opened_at(args: argparse.Namespace) -> Iterator[View]:
    """Open the recording and go to the place given by the options of `add_place`; Ctrl-C ends the block."""
    if args.frame < 0:
        raise UsageError(f"--frame cannot be {args.frame}: frames are counted from 0.")
    with opened(args.recording, quiet=args.quiet) as view:
        if args.at is not None:
            view.session.seek(args.at)
        here = view.here
        if args.lane is not None and args.lane != here.lane:
            if args.lane not in (each.id for each in here.lanes):
                known = ", ".join(str(each.id) for each in here.lanes)
                raise UsageError(f"No thread {args.lane} here; the threads are {known}.")
            view.lane = args.lane
        frames = len(view.frames())
        if args.frame >= max(frames, 1):
            raise UsageError(f"--frame cannot be {args.frame}: there are {frames:,} frames.")
        view.frame = args.frame
        yield view
