"""`replaydbg tui`: explore a recording in the terminal, forwards and backwards."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from replaydbg.cli.common.named_store import the_store
from replaydbg.cli.common.origin_warning import warn_if_foreign
from replaydbg.cli.common.standard_streams import is_interactive
from replaydbg.config import Settings, load_settings
from replaydbg.errors import NotBuilt, ReplaydbgError, UnsupportedPython, UsageError
from replaydbg.events.show import printable, show_status
from replaydbg.log.reader import open_recording
from replaydbg.native import check_core
from replaydbg.store.directory import GROUP, LIVE, SEALED, is_group, member_path

if TYPE_CHECKING:
    from replaydbg.tui.apps.pair_app import PairApp
    from replaydbg.tui.apps.reading_app import ReadingApp
    from replaydbg.tui.apps.recording_picker import Listed
    from replaydbg.tui.apps.replay_app import ReplayApp


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "recording", nargs="?", help="a path, a name such as run-12, or latest (default: choose from a list)"
    )
    parser.add_argument("other", nargs="?", help="another recording of the same program, shown side by side")
    parser.add_argument(
        "--at", metavar="MOMENT", default="", help="start at this moment (default: the failure, else the end)"
    )
    parser.add_argument("--theme", metavar="NAME", help="dark, light, or the name of a Textual theme")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument(
        "--memory", metavar="SIZE", help="memory limit of the debugger's processes, such as 2G; more makes seeks faster"
    )


def run(args: argparse.Namespace) -> int:
    """Show the terminal UI until the user leaves."""
    if not is_interactive():
        raise UsageError("The terminal UI needs a terminal: `replaydbg debug` works without one.")
    flags = {"session_memory": args.memory, "theme": args.theme, "ascii": True if args.ascii else None}
    settings = load_settings(flags)
    if args.other is not None:
        if args.at:
            raise UsageError("--at cannot be used with two recordings: each opens where it failed.")
        store = the_store()
        paths = store.resolve(args.recording), store.resolve(args.other)
        for each, name in zip(paths, (args.recording, args.other), strict=True):
            warn_if_foreign(each, name)
        return show_both(paths, settings)
    path = the_store().resolve(args.recording) if args.recording is not None else _picked(settings)
    if path is None or isinstance(path, int):
        return path or 0
    warn_if_foreign(path, args.recording or path.name)
    return show(path, settings, moment=args.at)


def show(path: Path, settings: Settings, *, moment: str = "") -> int:
    """Show a recording, and those that are opened from it, until the user leaves; return the exit code.

    Without a core, what it says without a replay.
    """
    try:
        check_core()
    except (UnsupportedPython, NotBuilt) as error:
        return _show_to_read(path, settings, str(error))
    # Imported here: Textual takes 0.2 s, which a mistyped command need not pay.
    from replaydbg.tui.apps.replay_app import ReplayApp
    from replaydbg.tui.keys import keymap

    app = ReplayApp(
        path,
        moment=moment,
        memory=settings.session_memory,
        is_ascii=_is_ascii(settings),
        theme=settings.theme,
        keys=keymap(settings.keymap, settings.keys),
    )
    code = _ended(app)
    return show(app.next_path, settings) if app.next_path is not None else code


def _show_to_read(path: Path, settings: Settings, why: str) -> int:
    # Imported here, as below.
    from replaydbg.tui.apps.reading_app import ReadingApp

    app = ReadingApp(path, why, is_ascii=_is_ascii(settings), theme=settings.theme)
    return _ended(app)


def show_both(paths: tuple[Path, Path], settings: Settings) -> int:
    """Show two recordings side by side until the user leaves; return the exit code.

    Raises UnsupportedPython and NotBuilt: both are replayed.
    """
    check_core()
    # Imported here, as above.
    from replaydbg.tui.apps.pair_app import PairApp
    from replaydbg.tui.keys import keymap

    keys = keymap(settings.keymap, settings.keys)
    app = PairApp(paths, memory=settings.session_memory, is_ascii=_is_ascii(settings), theme=settings.theme, keys=keys)
    return _ended(app)


def _ended(app: ReplayApp | PairApp | ReadingApp) -> int:
    """Show it until the user leaves; return the exit code."""
    code = app.run()
    if app.failure_message:
        print(f"replaydbg: {app.failure_message}", file=sys.stderr)
    return code if code is not None else 1


def _is_ascii(settings: Settings) -> bool:
    # In the C locale Python assumes UTF-8 for its streams all the same: it could write nothing else there.
    is_plain = os.environ.get("LC_ALL") in ("C", "POSIX")
    return settings.ascii or is_plain or "utf" not in (sys.stdout.encoding or "").lower()


# ---- choosing ----


def _picked(settings: Settings) -> Path | int | None:
    """Let the user choose; None: they left; a number: a signal ended the list, and this is the exit code."""
    # Imported here, as above.
    from replaydbg.tui.apps.recording_picker import Picker

    store = the_store()
    paths = [each.path for each in store.list()]
    beside = sorted(Path.cwd().iterdir())
    here = [each for each in beside if each.name.endswith((SEALED, LIVE))]
    here += [member_path(each, 1) for each in beside if each.name.endswith(GROUP) and is_group(each)]
    found = [_listed(each, store.name_of(each)) for each in [*paths, *(each for each in here if each not in paths)]]
    known = sorted((each for each in found if each is not None), key=lambda each: each.created, reverse=True)
    if not known:
        raise UsageError(f"No recordings in {store.directory}, nor here: `replaydbg record prog.py` makes one.")
    return Picker(known, theme=settings.theme, is_ascii=_is_ascii(settings)).run()


def _listed(path: Path, name: str) -> Listed | None:
    # Imported here, as above.
    from replaydbg.tui.apps.recording_picker import Listed

    try:
        with open_recording(path) as recording:
            end = recording.end
            return Listed(
                path=path,
                name=printable(name if path.parent != Path.cwd() else path.name),
                created=printable(recording.header.created[:19].replace("T", " ")),
                ended="not sealed" if end is None else show_status(end.status),
                is_failure=end is not None and end.status != 0,
                command=printable(shlex.join(recording.header.command)),
            )
    except ReplaydbgError:
        return None  # an unreadable recording is skipped here; `ls` names it
