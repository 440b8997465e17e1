"""The worker's side of the space-time diagram: a cut that keys move, and what is drawn of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from replaydbg.commands.view import View
from replaydbg.distributed.space_time import EventKind
from replaydbg.errors import UsageError
from replaydbg.groups.group_cuts import GroupCut, GroupCuts
from replaydbg.groups.group_ends import require_ends
from replaydbg.groups.messages import MessageEnd
from replaydbg.groups.other_end import event_here
from replaydbg.groups.space_time import CutChannel, DrawnMessage, SpaceTime, SpaceTimeDiagram
from replaydbg.render.channels_text import processes_text
from replaydbg.render.groups.cuts_text import position_rows
from replaydbg.render.groups.invariants_text import counted
from replaydbg.render.groups.processes_text import ended_text
from replaydbg.render.groups.space_time_text import clipped, diagram_remarks, message_text
from replaydbg.tui.diagram_model import CutMove, DiagramAnswer, DiagramArrowRow, DiagramRow

MOST_ROWS, FEWEST_OF_PROCESS = 600, 10
"""Events that are drawn, shared by the processes, and how many of each at least, on both sides of the cut."""

MOST_CHANNELS = 200
"""Channels whose state is listed."""


class CutDiagram:
    """A cut of the group, set by the process under the cursor: the others are in the latest consistent cut with it."""

    def __init__(self, view: View) -> None:
        """Take the prompt's view, whose session reports the progress. Raises UsageError if it has no group."""
        self._view = view
        self._cuts = GroupCuts(view.group.opened, self._idle)
        view.session.work.begin("reading the logs of the group")
        require_ends(self._cuts)
        self._space = SpaceTime(self._cuts, self._idle)
        self._process = self._position = 0
        """The process under the cursor, and its position."""
        self._wanted: dict[int, int] = {}
        """The positions of which the cut is the latest one: while the cursor goes to another process, they stay."""
        self._is_quiet = False

    def _idle(self) -> None:
        self._view.session.work.idle()

    def open(self) -> DiagramAnswer:
        """Return the cut at the position of the selected process. Raises UsageError."""
        self._view.session.work.begin("reading the messages of the group")
        number, event = self._view.process, event_here(self._view.session)
        if number not in self._space.first:
            raise UsageError(
                f"The recording of process {number} has no readable messages: replaydbg verify reports why."
            )
        self._space.match()
        self._process, self._position, self._is_quiet = number, event, False
        self._wanted = {number: event}
        return self._answer()

    def move(self, moves: Sequence[CutMove]) -> DiagramAnswer:
        """Return the cut after keys, in the order in which they were typed."""
        self._view.session.work.begin("moving the cut")
        before = self._process, self._position, self._wanted, self._is_quiet
        try:
            for each in moves:
                self._move(each)
            return self._answer()
        except BaseException:
            self._process, self._position, self._wanted, self._is_quiet = before
            raise

    def _move(self, move: CutMove) -> None:
        if move.switches_quiet:
            self._is_quiet = not self._is_quiet
        if move.lanes:
            positions = self._cut().positions
            processes = sorted(positions)
            at = processes.index(self._process) + move.lanes
            self._process = processes[max(0, min(at, len(processes) - 1))]
            self._position = positions[self._process]
            return
        if move.to is not None:
            self._process, self._position = move.to
        elif move.events and self._is_quiet:
            self._position = self._quiet_step(move.events)
        elif move.events:
            self._position = self._space.step(self._process, self._position, move.events)
        else:
            return
        self._wanted = {self._process: self._position}

    def _quiet_step(self, by: int) -> int:
        quiet = self._cuts.quiet[self._process]
        at = bisect_right(quiet, self._position) - 1 + by if by > 0 else bisect_left(quiet, self._position) + by
        return quiet[min(at, len(quiet) - 1)] if quiet and at >= 0 else 0

    def _cut(self) -> GroupCut:
        return self._cuts.latest(self._wanted, quiet=self._is_quiet)

    # ---- what is shown ----

    def _answer(self) -> DiagramAnswer:
        cut = self._cut()
        most = max(MOST_ROWS // (2 * len(cut.positions)), FEWEST_OF_PROCESS)
        diagram = self._space.around(cut, most)
        layout, position = diagram.layout, cut.positions[self._process]
        opened = self._cuts.opened
        owner, event = opened.owner(self._process, position)
        is_open = position > opened.matching.members[opened.index_of(self._process) or 0].events
        end = MessageEnd(owner, 0 if is_open else event, max(event - 1, 0), None, "") if position else None
        kind = "Quiet cut" if self._is_quiet else "Cut"
        return DiagramAnswer(
            f"{kind} of {clipped(opened.name)}: process {self._process} at {position:,}",
            layout.processes,
            self._process,
            tuple(self._rows(diagram)),
            layout.line,
            tuple(_arrows(diagram)),
            tuple(self._state(diagram)),
            self._is_quiet,
            end,
            "" if position else f"proc {self._process}",
        )

    def _rows(self, diagram: SpaceTimeDiagram) -> Iterator[DiagramRow]:
        known = {each.number: each for each in self._cuts.opened.group.processes}
        for each in diagram.layout.events:
            is_begin, is_end = each.kind is EventKind.BEGIN, each.kind is EventKind.END
            text = f"ends: {ended_text(known[each.process])}" if is_end else "begins" if is_begin else ""
            label = str(each.process) if is_begin or is_end else f"{each.process}@{each.position}"
            yield DiagramRow(each.process, each.position, label, text, is_begin, is_end)

    def _state(self, diagram: SpaceTimeDiagram) -> Iterator[tuple[str, str]]:
        yield "Processes", "accent"
        for number, event, last, asked, place in position_rows(self._cuts.opened, diagram.cut, diagram.last):
            asked = f" (asked for {asked})" if asked else ""
            style = "bold" if number == str(self._process) else ""
            yield f"{number}  {event} of {last}{asked}  {clipped(place)}", style
        yield "", ""
        yield "Channels", "accent"
        states = sorted(diagram.states, key=lambda each: (not each.messages, each.channel.number))
        for each in states[:MOST_CHANNELS]:
            yield _channel_line(each), "warning" if each.messages else "dim"
        if len(states) > MOST_CHANNELS:
            yield f"{counted(len(states) - MOST_CHANNELS, 'channel')} more", "dim"
        if not states:
            yield "None between recorded processes.", "dim"
        for sentence in diagram_remarks(self._cuts.opened, diagram):
            yield "", ""
            yield sentence, "dim"


def _channel_line(state: CutChannel) -> str:
    channel = state.channel
    ends = f"{processes_text(channel.senders)} to {processes_text(channel.receivers)}"
    bytes_text = (
        f"{counted(state.length, 'byte')} in {counted(state.messages, 'message')}" if state.messages else "empty"
    )
    return f"{channel.number} {channel.kind}  {ends}  {bytes_text}"


def _arrows(diagram: SpaceTimeDiagram) -> Iterator[DiagramArrowRow]:
    for placed, message in zip(diagram.layout.arrows, diagram.messages, strict=True):
        if placed is not None:
            is_flying = message.is_in_flight
            yield DiagramArrowRow(
                placed.source, placed.target, _to(message), message_text(message), message.is_start, is_flying
            )


def _to(message: DrawnMessage) -> int:
    if message.target is not None:
        return message.target.process
    return message.to[0] if message.to else message.source.process
