"""`replaydbg resume`: replay a recording to its last event, or another one, and let its program run on, live."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.option_parser import GivenOnce
from replaydbg.cli.common.output import print_json
from replaydbg.cli.common.schema import SCHEMA_VERSION
from replaydbg.cli.common.standard_streams import open_closed_streams
from replaydbg.cli.running.event_option import event_before
from replaydbg.cli.running.resume_group import LATEST, run_group
from replaydbg.cli.running.resume_result import check_own, print_result, print_wait
from replaydbg.config import load_settings
from replaydbg.errors import NoSuchMoment, UsageError
from replaydbg.events.show import printable, show_status
from replaydbg.launch.endings import end_like
from replaydbg.log.edit.other_answer import NewAnswer
from replaydbg.log.group import is_of_several, read_group
from replaydbg.log.reader import open_recording
from replaydbg.render.json_data.resume_json import plan_facts
from replaydbg.render.resume_text import plan_lines, question, start_line
from replaydbg.resume.going_live import Listener, ResumeChoices
from replaydbg.resume.images.imager import INTERVAL, ImageWishes
from replaydbg.resume.launcher import plan_resume, resume
from replaydbg.resume.settle import ASK, POLICIES, REPEAT, SKIP, can_skip
from replaydbg.resume.standby import NotNeeded, stand_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from replaydbg.record.result import RecordResult
    from replaydbg.resume.findings import Finding
    from replaydbg.resume.plan import Plan

_ANSWERS = {"r": REPEAT, "repeat": REPEAT, "s": SKIP, "skip": SKIP}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "recording", help="a recording, or a group of processes: a path, a name such as run-12, or latest"
    )
    parser.add_argument(
        "--at",
        metavar="MOMENT",
        help="go live before this event, or at @end, @start, @t+1.5s or a snapshot such as @#3 (default: after the "
        "last event)",
    )
    parser.add_argument(
        "--set",
        action=GivenOnce,
        metavar="TEXT",
        help="change what one call of the recorded run returned, such as 'event 812 = b\"yes\"', and go live right "
        "after it",
    )
    parser.add_argument(
        "--at-cut",
        metavar="PROCESS@EVENT",
        nargs="+",
        help="for a group: use the latest recovery line at or before these moments, such as 2@898 (process 2, event "
        "898); put it after the group's name (default: latest)",
    )
    parser.add_argument(
        "--plan",
        action="store_true",
        help="print what would be reopened, lost and repeated, and the expected time; change nothing",
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="keep a hot standby: follow the recording while its program runs, and go live when it is killed",
    )
    _add_image_arguments(parser)
    parser.add_argument(
        "--in-flight",
        choices=POLICIES,
        default=ASK,
        help="what to do with a call if nothing shows whether it was made (default: ask)",
    )
    parser.add_argument(
        "--force", action="store_true", help="go live even if files differ, or something cannot be opened again"
    )
    parser.add_argument(
        "--after-power-loss",
        action="store_true",
        help="for a recording made with --durable: go live before the first write that is missing on disk, "
        "and truncate files to their recorded sizes",
    )
    _add_output_arguments(parser)


def _add_image_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for images of a standby."""
    parser.add_argument(
        "--images",
        type=Path,
        metavar="DIR",
        help="with --follow: keep an image of the standby in DIR, made by CRIU; without: go on from the newest image "
        "there that fits the recording",
    )
    parser.add_argument(
        "--image-every",
        metavar="SECONDS",
        help="with --images and --follow: make an image whenever the standby has used this much CPU time (default: 60)",
    )


def _add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the new recording, and for what is printed."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the new recording, old part included; .rdbg is added if missing (default: a name in the store)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", default=None, help="print neither plan nor summary")
    parser.add_argument(
        "--json", action="store_true", help="print the summary as JSON on stderr; with --plan, the plan on stdout"
    )


def run(args: argparse.Namespace) -> int:
    """Resume; return the program's exit code, or end by the signal that ended the program."""
    open_closed_streams()
    settings = load_settings({"quiet": args.quiet})
    store = the_store()
    directory = store.find_group(args.recording)
    if directory is not None and is_of_several(group := read_group(directory)):
        if args.images is not None:
            raise UsageError("--images is for a single process: a group is replayed from the beginning.")
        if args.set is not None:
            raise UsageError("--set is for a single process: record it with --children=none.")
        return run_group(args, directory, group, store, settings)
    if args.at_cut is not None:
        raise UsageError("--at-cut is for a group of processes: one process is resumed with --at.")
    images = _images(args)
    _check_follow(args)  # of a group, it is refused for another reason
    path = store.resolve(args.recording)
    # The directory of a program that is followed is sealed, and has another name, once the program has been killed.
    name = args.recording if args.follow and args.recording != LATEST else store.name_of(path)
    choices = _choices(args, path)
    if not args.plan and not args.force:
        check_own([path], name)
    if args.plan:
        plan = plan_resume(path, name=name, choices=choices, images=args.images)
        if args.json:
            print_json(plan_facts(plan))
        else:
            print("\n".join(plan_lines(plan)))
        return 0
    is_verbose = not settings.quiet and not args.json
    listener = _listener(args, is_verbose=is_verbose)
    goes_on: Callable[..., RecordResult | NotNeeded] = partial(resume, images=args.images)
    if args.follow:
        goes_on = partial(stand_by, images=images, begins=partial(_print_standby, name) if is_verbose else None)
    result = goes_on(path, name=name, choices=choices, output=args.output, settings=settings, listener=listener)
    if isinstance(result, NotNeeded):
        _print_not_needed(name, result, is_verbose=is_verbose, as_json=args.json)
        return 0
    print_result(args, result, store, is_verbose=is_verbose)
    return end_like(result.status)


def _listener(args: argparse.Namespace, *, is_verbose: bool) -> Listener:
    return Listener(
        ask=_ask if sys.stdin.isatty() and sys.stderr.isatty() else None,
        waits=print_wait if is_verbose else None,
        begins=_print_start if is_verbose and not args.follow else None,  # a standby says so by itself, before
        goes_live=_print_plan if is_verbose else None,
        notes=_print_note if is_verbose else None,
    )


def _choices(args: argparse.Namespace, path: Path) -> ResumeChoices:
    """Return what the options choose. Raises UsageError."""
    at = event_before(args.at, path) if args.at is not None else 0  # after the last one
    answer = _answer(args)
    if answer is not None:
        at = _event_after(answer, path)
    choices = ResumeChoices(at, args.in_flight, args.force, args.after_power_loss, answer)
    if args.after_power_loss and (args.follow or args.at is not None):
        other = "--follow" if args.follow else "--at"
        raise UsageError(f"--after-power-loss cannot be used with {other}: the event is chosen by what is on disk.")
    return choices


def _answer(args: argparse.Namespace) -> NewAnswer | None:
    """Return the answer that is changed; None: none. Raises UsageError."""
    if args.set is None:
        return None
    for name, is_given in (
        ("--at", args.at is not None),
        ("--follow", args.follow),
        ("--images", args.images is not None),
        ("--after-power-loss", args.after_power_loss),
    ):
        if is_given:
            raise UsageError(f"--set cannot be used with {name}: the program goes live right after the changed answer.")
    # Imported here: only this option needs it.
    from replaydbg.futures.faults.set_answer import parsed_answer

    found = parsed_answer(args.set, only_values=True)
    if found.is_raised:
        raise UsageError("resume --set takes a value; to raise an exception, use `replaydbg futures --set`.")
    return NewAnswer(found.event, found.value)


def _event_after(answer: NewAnswer, path: Path) -> int:
    """Return the event before which the program goes live; 0: after the last one. Raises NoSuchMoment."""
    with open_recording(path) as recording:
        events = recording.log_header.crossings if recording.log_header is not None else 0
    if not 1 <= answer.event <= events:
        raise NoSuchMoment(str(answer.event), f"the recording has {events:,} events")
    return answer.event + 1 if answer.event < events else 0


def _images(args: argparse.Namespace) -> ImageWishes | None:
    """Return the images that are made of a standby; None: none. Raises UsageError."""
    if args.image_every is not None and (args.images is None or not args.follow):
        raise UsageError("--image-every needs --follow and --images DIR.")
    if args.images is None:
        return None
    if args.at is not None or args.after_power_loss:
        other = "--at" if args.at is not None else "--after-power-loss"
        raise UsageError(f"--images cannot be used with {other}: an image may be later than the event.")
    every = INTERVAL if args.image_every is None else _seconds(args.image_every)
    return ImageWishes(args.images, every)


def _seconds(text: str) -> float:
    """Return a positive number of seconds. Raises UsageError."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        raise UsageError(f"--image-every must be a number of seconds above 0 (got {text!r})")
    return seconds


def _check_follow(args: argparse.Namespace) -> None:
    """Raise UsageError for options that a standby cannot have."""
    if not args.follow:
        return
    if args.plan:
        raise UsageError("--plan cannot be used with --follow: what is open is known when the program is killed.")
    if args.at is not None:
        raise UsageError("--at cannot be used with --follow, which goes live after the last event.")
    if args.in_flight == ASK and not sys.stdin.isatty():
        reason = "nobody can be asked when the program is killed"
        raise UsageError(f"--follow needs --in-flight=repeat or --in-flight=skip without a terminal: {reason}.")


def _print_standby(name: str, pid: int) -> None:
    text = f"hot standby for {printable(name)}: if process {pid} is killed, the program continues here"
    print(f"replaydbg: {text}, with all your rights", file=sys.stderr, flush=True)


def _print_not_needed(name: str, standby: NotNeeded, *, is_verbose: bool, as_json: bool) -> None:
    if as_json:
        facts = {"recording": name, "took_over": False, "status": standby.status}
        print(json.dumps({"schema_version": SCHEMA_VERSION, **facts}), file=sys.stderr)
    elif is_verbose:
        # Python runs what it does at the end of a program, and then ends by the SIGINT that nobody handled.
        is_code = standby.status >= 0
        how = (
            f"ended with {show_status(standby.status)}"
            if is_code
            else f"had ended when it was {show_status(standby.status)}"
        )
        print(f"replaydbg: the program of {printable(name)} {how}; the standby was not needed", file=sys.stderr)


def _print_start(plan: Plan) -> None:
    print(f"replaydbg: {start_line(plan)}", file=sys.stderr, flush=True)


def _print_note(text: str) -> None:
    print(f"replaydbg: {printable(text)}", file=sys.stderr, flush=True)


def _print_plan(plan: Plan) -> None:
    print("\n".join(f"replaydbg: {line}" for line in plan_lines(plan)), file=sys.stderr, flush=True)


def _ask(finding: Finding) -> str:
    """Ask on the terminal until there is an answer; an empty line or its end is none."""
    while True:
        print(f"replaydbg: {question(finding)}", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline().strip().lower()
        if not line:
            return ""
        choice = _ANSWERS.get(line)
        if choice is not None and (choice != SKIP or can_skip(finding.call)):
            return choice
