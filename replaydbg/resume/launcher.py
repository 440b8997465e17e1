"""Resume a recorded program: replay it to its last event, or another one, then let it run live into a new recording.

The launcher opens what the program had open, and settles the calls in flight; the core puts it in its place. Nothing of
the program runs live before all of that has succeeded. E. N. Elnozahy et al., A Survey of Rollback-Recovery Protocols
in Message-Passing Systems, ACM Computing Surveys 34 (2002), calls this rollback recovery based on a log.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from replaydbg.classes import replace
from replaydbg.config import Settings, load_settings
from replaydbg.errors import CannotResume, Corrupt
from replaydbg.gates.row import OPENS
from replaydbg.gates.table import OWN
from replaydbg.launch.interruption import postponed
from replaydbg.launch.process import Ended
from replaydbg.log.edit.other_answer import NewAnswer, set_answer
from replaydbg.log.reader import Recording, open_recording
from replaydbg.record.place import make_live_directory, shared_store, write_start
from replaydbg.record.result import RecordResult
from replaydbg.record.sealing import seal_recording
from replaydbg.replay.launcher import ReplayStart
from replaydbg.replay.time_limits import idle_limit
from replaydbg.resources.kinds import Unknown
from replaydbg.resume.checks.continuations import check_new, check_not_resumed, find_continuation
from replaydbg.resume.going_live import GoingLive, Listener, ResumeChoices
from replaydbg.resume.hooks import Hooks, installed_hooks
from replaydbg.resume.images.restoring import GoingLiveFromImage, perform_from_image, with_images
from replaydbg.resume.past import read_acts
from replaydbg.resume.plan import Plan
from replaydbg.resume.power_loss.recovered_files import first_missing_change
from replaydbg.resume.preparation import (
    continued_header,
    first_orders,
    first_plan,
    held,
    written_to,
)
from replaydbg.resume.replaying import core_orders, perform, prepare_live, removed_unless_live


def resume(
    path: Path,
    *,
    name: str = "",
    choices: ResumeChoices | None = None,
    output: Path | None = None,
    settings: Settings | None = None,
    listener: Listener | None = None,
    hooks: Hooks | None = None,
    images: Path | None = None,
) -> RecordResult:
    """Run the program of the recording at `path` on, live, from a moment; return its recording, old part included.

    `name` is the recording's name in commands (default: its path), `output` the new one's path (default: a name in the
    store); `settings` are loaded if not given, `hooks` those of installed packages. `images` is a directory with images
    of a standby: the replay continues from the newest that fits, if there is one. Raises CannotResume if the program
    cannot go live, Divergence if its replay differs, CannotRecord if nothing can be written, and the errors of
    `open_recording` and `prepare`.
    """
    choices = ResumeChoices() if choices is None else choices
    listener = Listener() if listener is None else listener
    settings = load_settings() if settings is None else settings
    name = name or str(path)
    with held(path, name), open_recording(path) as recording, ExitStack() as stack:
        if not choices.at and not choices.force:
            check_not_resumed(recording, name, settings.store)
        check_new(output)  # after that: the name is often that of the continuation
        hooks = installed_hooks(name) if hooks is None else hooks
        if choices.after_power_loss:
            choices = replace(choices, at=first_missing_change(recording, name))
        plan = first_plan(recording, name, choices.at, lost_power=choices.after_power_loss)
        acts = partial(read_acts, recording, plan.event)
        run = GoingLiveFromImage(plan, choices, listener, hooks, stack, read_acts=acts)
        run.open_all()
        live = make_live_directory(output, settings.store)
        with removed_unless_live(live, run):
            found = perform_from_image(recording, live, run, images) if images is not None else None
            ended, seconds = found if found is not None else _perform(recording, live, run, settings)
        with postponed():  # a signal to a whole group is meant for the program, and its recording is wanted
            return seal_recording(live, ended, seconds, store=shared_store(output, settings.store))


def plan_resume(
    path: Path,
    *,
    name: str = "",
    choices: ResumeChoices | None = None,
    hooks: Hooks | None = None,
    images: Path | None = None,
) -> Plan:
    """Return what `resume` would do, and do nothing of it: the program is replayed, and does not go live.

    With the choice `ask`, the plan has the calls in flight that would be asked about. Raises as `resume` does, except
    for what the plan itself contains.
    """
    choices = ResumeChoices() if choices is None else choices
    settings = load_settings()
    name = name or str(path)
    with open_recording(path) as recording, ExitStack() as stack:
        continuation = None if choices.at else find_continuation(recording, settings.store)
        hooks = installed_hooks(name) if hooks is None else hooks
        if choices.after_power_loss:
            choices = replace(choices, at=first_missing_change(recording, name))
        plan = first_plan(recording, name, choices.at, lost_power=choices.after_power_loss)
        plan = replace(plan, continuation=continuation)
        run = GoingLive(plan, choices, Listener(), hooks, stack, is_dry=True)
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="replaydbg-plan-")))
        live = directory / "plan.rdbg-live"
        live.mkdir(mode=0o700)
        _perform(recording, live, run, settings)
        return run.plan if images is None else with_images(run.plan, recording, images)


def _perform(recording: Recording, live: Path, run: GoingLive, settings: Settings) -> tuple[Ended, float]:
    """Replay the program and let it go live; return how it ended, and after how many seconds."""
    with ExitStack() as stack:
        with written_to(live):
            unpacked = recording.unpack(live)
            if run.choices.answer is not None:
                _change_answer(recording, live, run.choices.answer, run.plan.name)
            write_start(live, continued_header(recording, live, run.plan), first_orders(recording.header))
        if unpacked.is_world_cut:
            raise Corrupt(str(recording.path), "a part of the modules that it imported is missing")

        def prepared(core_fd: int, started: ExitStack) -> ReplayStart:
            start = prepare_live(recording, live, run, core_orders(recording, live, run, settings, core_fd), stack)
            _enter(run, started)
            run.begin()
            return start

        return perform(recording, live, run, prepared, stack, idle=idle_limit(recording))


def _change_answer(recording: Recording, live: Path, answer: NewAnswer, name: str) -> None:
    """Change the answer of an event in the log that is replayed, before the program goes live."""
    if recording.header.durable:
        raise CannotResume(name, "--set cannot change a recording that was made with --durable: it has checksums")
    more_than_values = {row.full_name for row in OWN if row.flags & OPENS or row.handler == "slot"}
    set_answer(live / "log", answer, recording.header.gates, more_than_values)


def _enter(run: GoingLive, started: ExitStack) -> None:
    """Take the program's working directory and its mask for new files, which its process inherits, until it has."""
    cwd, umask = run.plan.resources.cwd, run.plan.past.umask
    if umask is not None:
        started.callback(os.umask, os.umask(umask))
    if isinstance(cwd, Unknown):
        return
    with suppress(OSError):  # ours was removed
        before = Path.cwd()
        started.callback(os.chdir, before)
    try:
        os.chdir(cwd)
    except OSError as error:
        if not run.choices.force and not run.is_dry:
            raise CannotResume(
                run.plan.name, f"its working directory {cwd} cannot be entered: {error.strerror}"
            ) from error
