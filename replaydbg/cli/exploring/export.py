"""`replaydbg export`: an object of a moment, a failure as a page or as a test, or all calls for a viewer."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.opening import add_place, add_quiet, opened, opened_at
from replaydbg.cli.common.output import add_json, add_recording, print_json, write_file
from replaydbg.cli.exploring.export_calls import VIEWERS, write_calls
from replaydbg.debugger.object_export import Export
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.native import check_core
from replaydbg.render.export_text import export_facts, export_lines, page_file_facts
from replaydbg.store.directory import member_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("expression", metavar="EXPR", nargs="?", help="the expression to save, such as 'app.cache[3]'")
    parser.add_argument("-o", "--output", metavar="FILE", help="the file to write, such as x.dill")
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="write a page about the failure instead: source with values, stack, who wrote what, output, threads",
    )
    parser.add_argument(
        "--test",
        metavar="FILE",
        help="write a test for pytest instead, which has the recorded inputs and does not need replaydbg",
    )
    parser.add_argument(
        "--check", action="store_true", help="with --test: run the test once, to see whether it fails as recorded"
    )
    for name, viewer in VIEWERS.items():
        parser.add_argument(f"--{name}", metavar="FILE", help=f"write all calls of functions instead, for {viewer}")
    add_place(parser)
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file; return 0 even if parts of the object could not be saved, which are listed."""
    _check(args)
    if args.html is not None:
        return _page(args)
    if args.test is not None:
        # Imported here: other exports do not need it.
        from replaydbg.cli.exploring.export_tests import write_exported_test

        return write_exported_test(args)
    check_core()
    if any(getattr(args, name) is not None for name in VIEWERS):
        return write_calls(args)
    with opened_at(args) as view:
        found = view.session.run.export(args.expression, **view.at)
        write(found, args.output)
        if args.json:
            print_json(export_facts(found, args.output))
        else:
            for line in export_lines(found, args.output):
                view.screen.line(line)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go together, or are missing."""
    wanted = [f"--{name}" for name in ("html", "test", *VIEWERS) if getattr(args, name) is not None]
    if args.check and args.test is None:
        raise UsageError("--check needs --test FILE: it runs the test that was written.")
    if not wanted:
        missing = [name for name, value in (("EXPR", args.expression), ("-o FILE", args.output)) if value is None]
        if missing:
            *most, last = (f"--{name}" for name in ("html", "test", *VIEWERS))
            others = f"{', '.join(most)} or {last}"
            raise UsageError(
                f"usage: export RECORDING EXPR -o FILE ({' and '.join(missing)} missing), or {others} FILE"
            )
        return
    if len(wanted) > 1:
        raise UsageError(f"{' and '.join(wanted)} cannot be combined: export writes one file.")
    if args.expression is not None or args.output is not None:
        raise UsageError(f"{wanted[0]} cannot be combined with EXPR or -o: it writes a file of its own.")
    if args.frame or args.lane is not None:
        raise UsageError(f"{wanted[0]} cannot be combined with --frame or --thread: the file has all of them.")
    if args.html is None and args.at is not None:
        raise UsageError(f"{wanted[0]} cannot be combined with --at: the file has the whole run.")


def _page(args: argparse.Namespace) -> int:
    """Write the page; what is missing on it is reported on stderr."""
    # Imported here: other exports do not need it.
    from replaydbg.pages.facts.collected import recording_of
    from replaydbg.pages.making import NOT_HERE, page_of_session, page_without_replay

    path = _shown_recording(args.recording)
    name = the_store().name_of(path)
    problem = ""
    try:
        check_core()
        with opened(str(path), quiet=args.quiet) as view:
            if args.at is not None:
                view.session.seek(args.at)
            data = page_of_session(view.session, recording_of(view.session, name))
    except NOT_HERE as error:
        data = page_without_replay(path, name, error)
        problem = str(error)
    write_file(args.html, data)
    if args.json:
        print_json(page_file_facts(args.html, data, problem))
        return 0
    if problem:
        print(f"replaydbg: the page has only what needs no replay: {printable(problem)}", file=sys.stderr)
    print(printable(args.html))
    return 0


def _shown_recording(name: str) -> Path:
    """Return the recording that the page is about: of a group the process that failed."""
    store = the_store()
    directory = store.find_group(name)
    if directory is None:
        return store.resolve(name)
    from replaydbg.pages.facts.group_facts import shown_process

    return member_path(directory, shown_process(directory))


def write(found: Export, path: str) -> None:
    """Write the object to a file, completely or not at all. Raises UsageError."""
    write_file(path, found.data)
