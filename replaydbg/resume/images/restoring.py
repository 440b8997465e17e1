"""Bring a standby back from an image, let it replay the rest of the log, and let its program go live."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from replaydbg.classes import replace
from replaydbg.errors import CannotResume, Divergence
from replaydbg.launch.process import Ended
from replaydbg.log.reader import Recording
from replaydbg.record.place import write_start
from replaydbg.replay.launcher import ReplayStart
from replaydbg.replay.time_limits import idle_limit
from replaydbg.replay.unpacked_logs import unpack_logs
from replaydbg.resume.conversation import CoreAnswer, Due
from replaydbg.resume.going_live import GoingLive
from replaydbg.resume.images.criu import CriuFailed, await_process_id, bring_back, check_criu
from replaydbg.resume.images.image_directory import Image, ImageDirectory, check_digests
from replaydbg.resume.images.image_facts import mismatch, this_place
from replaydbg.resume.images.page import SharedPage
from replaydbg.resume.plan import Plan, PlannedImage, RecoveryCost
from replaydbg.resume.preparation import continued_header, first_orders, written_to
from replaydbg.resume.replaying import perform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_FROM_BEGINNING = "the program is replayed from the beginning"


class GoingLiveFromImage(GoingLive):
    """A resumption whose replay may come out of an image."""

    page: SharedPage | None = None
    """It is shared with a process out of an image; None: the replay began at the beginning."""

    def wait(self, connection: socket.socket, pid: int) -> socket.socket:
        """Wait for the connection of a process out of an image, which has none at first."""
        return connection if self.page is None else self.page.accept(pid)

    def answer(self, due: Due, answer: CoreAnswer, pid: int) -> None:
        """Answer; a process out of an image has the working directory of the standby, not that of its program."""
        if self.page is not None:
            self.enter_by_core()
        super().answer(due, answer, pid)


def perform_from_image(
    recording: Recording, live: Path, run: GoingLiveFromImage, directory: Path
) -> tuple[Ended, float] | None:
    """Bring the newest image back that fits, and let it go live; return how it ended, and after how many seconds.

    None: no image can be used, a note has the reason, and nothing is live. Raises as `perform` does.
    """
    planned = run.plan
    with ExitStack() as stack:
        try:
            check_criu()
            files = _unpacked(recording, live, stack)
            image, images = _newest_that_fits(recording, files, directory, run)
            for each in images:
                check_digests(each)
            await_process_id(image.facts.pid)
            with written_to(live):
                write_start(live, continued_header(recording, live, run.plan), first_orders(recording.header))
            run.plan = replace(run.plan, recovery=_after(image, run.plan.recovery))
            left = run.plan.recovery.events_left
            run.note(f"going on from the image at event {image.facts.event:,}; {left:,} events are left")
            return _perform(recording, live, run, image, files, stack)
        except CriuFailed as error:
            run.note(f"no image is used: {error}; {_FROM_BEGINNING}")
        except (CannotResume, Divergence) as error:
            if run.is_planned or run.signal or run.page is None:
                raise
            run.note(f"the process out of the image failed: {error}; {_FROM_BEGINNING}")
        finally:
            run.page = None
    _empty(live)
    run.plan, run.error = planned, None
    return None


def _perform(
    recording: Recording,
    live: Path,
    run: GoingLiveFromImage,
    image: Image,
    files: Mapping[str, BinaryIO],
    stack: ExitStack,
) -> tuple[Ended, float]:
    page = run.page = SharedPage(live, stack, run.plan.name, has_ended=True)
    ours: dict[str, BinaryIO] = {"page": page.file, "report": page.report, **files}
    given = {Path(image.facts.files[name]): file.fileno() for name, file in ours.items() if name in image.facts.files}
    log = Path(page.listener.getsockname()).with_name("criu.log")
    start = ReplayStart(command=[], env={}, streams=[], ignored=[], report=page.report, is_cut=False)

    def prepared(core_fd: int, started: ExitStack) -> ReplayStart:
        run.begin()
        return start

    return perform(
        recording,
        live,
        run,
        prepared,
        stack,
        idle=idle_limit(recording),
        listener=page.listener,
        brings_back=lambda: bring_back(image.path, given, log),
    )


def _unpacked(recording: Recording, live: Path, stack: ExitStack) -> dict[str, BinaryIO]:
    """Return the logs of a recording: the new one is written to other files, while these are read."""
    with written_to(live):
        return unpack_logs(recording, stack, in_place=False).files


def _newest_that_fits(
    recording: Recording, files: Mapping[str, BinaryIO], directory: Path, run: GoingLiveFromImage
) -> tuple[Image, Sequence[Image]]:
    """Return the newest image that fits the logs in `files`, and all that it needs. Raises CriuFailed."""
    images, unreadable = ImageDirectory(directory, run.plan.name).images()
    for each in unreadable:
        run.note(f"the image {each.path} is left out: {each.reason}")
    if not images:
        raise CriuFailed(f"there is no complete image in {directory}")
    place = this_place(recording)
    reasons = []
    for image in images:
        reason = mismatch(image.facts, files, place)
        if not reason:
            by_name = {each.path.name: each for each in images}
            if not all(each in by_name for each in image.facts.parents):
                raise CriuFailed("an image on which the newest one is based is missing")
            return image, [image, *(by_name[each] for each in image.facts.parents)]
        reasons.append(f"that at event {image.facts.event:,} does not fit: {reason}")
    raise CriuFailed(reasons[0])


def _empty(live: Path) -> None:
    """Remove what a process that did not go live has written into the live directory."""
    for each in live.iterdir():
        each.unlink()


def with_images(plan: Plan, recording: Recording, directory: Path) -> Plan:
    """Return the plan with the images in `directory`, and what is left to be replayed after the best of them."""
    with ExitStack() as stack:
        files = unpack_logs(recording, stack, in_place=False).files
        images, unreadable = ImageDirectory(directory, plan.name).images()
        place = this_place(recording)
        planned = tuple(
            PlannedImage(str(each.path), each.facts.event, each.size, mismatch(each.facts, files, place))
            for each in images
        )
    problem = _problem()
    planned = tuple(replace(each, unfit=each.unfit or problem) for each in planned)
    left_out = tuple(PlannedImage(str(each.path), None, 0, each.reason) for each in unreadable)
    plan = replace(plan, images=(*planned, *left_out))
    best = next((image for image, each in zip(images, planned, strict=True) if not each.unfit), None)
    if best is None:
        return plan
    return replace(plan, recovery=_after(best, plan.recovery))


def _after(image: Image, recovery: RecoveryCost) -> RecoveryCost:
    """Return what is left to be done after an image."""
    facts = image.facts
    return replace(recovery, saved_events=facts.event, saved_cpu_ms=facts.cpu_ms, image_bytes=image.size)


def _problem() -> str:
    try:
        check_criu()
    except CriuFailed as error:
        return str(error)
    return ""
