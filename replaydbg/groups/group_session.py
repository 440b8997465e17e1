"""The open sessions of a group's processes: one for each process that was asked for, under one memory budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from replaydbg.debugger import Session
from replaydbg.errors import ReplaydbgError, UsageError
from replaydbg.groups.messages import Message, messages_received
from replaydbg.groups.opened_group import OpenedGroup, open_member
from replaydbg.log.group import Group, GroupProcess, group_directory, process_number, read_group
from replaydbg.store.directory import member_path

ONE_PROCESS = "This is a recording of one process: the program had no children that were recorded."


class ReceivedMessages(NamedTuple):
    """Messages that events received through channels."""

    messages: dict[int, list[Message]]
    """By event; events that received nothing are missing."""
    problem: str
    """Why they are unknown; empty: they are known."""


class GroupSession:
    """The sessions of the processes of a group, or that of a recording alone. Close it, or use it as a context manager.

    Each session keeps its position. Not for use by several threads.
    """

    def __init__(self, first: Session, opens: Callable[..., Session] | None = None) -> None:
        """Begin with an open session; `opens` opens others, which must share its memory budget (default: Session).

        It is called with a path, and as `branch_of` with the session of the process that forked this one, or None.
        """
        self._budget = first.travel.memory.budget
        self._opens = opens if opens is not None else partial(Session, memory=self._budget)
        self.directory = group_directory(first.path)
        """The directory of the group; None: the recording is in none."""
        self._sessions = {self.number_of(first): first}

    def number_of(self, session: Session) -> int:
        """Return the number of the process of a session; 0: its recording is in no group."""
        return process_number(session.path) if self.directory is not None else 0

    @property
    def sessions(self) -> dict[int, Session]:
        """The open sessions, by the number of the process."""
        return dict(self._sessions)

    @property
    def name(self) -> str:
        """The name of the group, such as `run-12`. Raises UsageError if there is none."""
        return self._directory().name.removesuffix(".rdbgs")

    @cached_property
    def opened(self) -> OpenedGroup:
        """The group with all transfers of its processes; read once. Raises UsageError if it is none."""
        return OpenedGroup(self._directory())

    @property
    def group(self) -> Group:
        """The processes, as they are known by now. Raises UsageError if the recording is in no group."""
        return read_group(self._directory())

    def _directory(self) -> Path:
        if self.directory is None:
            raise UsageError(ONE_PROCESS)
        return self.directory

    def session(self, number: int) -> Session:
        """Return the session of a process, which is opened now if it was not. Raises what opening does, and UsageError.

        The others give up memory for it.
        """
        if number not in self._sessions:
            path = self._path_of(number)
            self._share(len(self._sessions) + 1)
            try:
                self._sessions[number] = self._opens(path, branch_of=self._parent_of(number))
            finally:
                self._budget.sharers = len(self._sessions)
        return self._sessions[number]

    def _parent_of(self, number: int) -> Session | None:
        """Return the session of the process that forked another one, if it is open."""
        process = self.process(number)
        is_forked = process is not None and process.how == "fork"
        return self._sessions.get(process.parent) if process is not None and is_forked else None

    def _share(self, sharers: int) -> None:
        """Divide the memory among that many sessions."""
        self._budget.sharers = sharers
        for each in self._sessions.values():
            each.travel.fit()

    def _path_of(self, number: int) -> Path:
        """Return the recording of a process. Raises UsageError if it has none, or Corrupt if it is another one's."""
        directory, group = self._directory(), self.group
        process = next((each for each in group.processes if each.number == number), None)
        if process is None:
            known = ", ".join(_ranges([each.number for each in group.processes]))
            raise UsageError(f"{self.name} has no process {number}. Its processes are {known}.")
        if process.recording is None:
            raise UsageError(f"Process {number} of {self.name} is not recorded: {process.why_not}.")
        open_member(directory, group, process).close()
        return member_path(directory, number)

    def process(self, number: int) -> GroupProcess | None:
        """Return what is known of a process; None: nothing."""
        return next((each for each in self.group.processes if each.number == number), None)

    def replace(self, session: Session) -> None:
        """Take a new session of a process in the place of one that was lost."""
        self._sessions[self.number_of(session)] = session

    def received(self, session: Session, events: Iterable[int]) -> ReceivedMessages:
        """Return what events of a session's process received through channels, with the senders."""
        wanted = sorted(set(events))
        if self.directory is None or not wanted:
            return ReceivedMessages({}, "")
        try:
            return ReceivedMessages(messages_received(self.opened, self.number_of(session), wanted), "")
        except ReplaydbgError as error:
            return ReceivedMessages({}, str(error))

    def take_notices(self) -> list[str]:
        """Return, once, the news of all sessions that what was shown before the end of the first pass may be wrong."""
        return [notice for each in self._sessions.values() if (notice := each.take_notice())]

    def close(self) -> None:
        """Close all sessions; again is harmless."""
        for each in self._sessions.values():
            each.close()

    def __enter__(self) -> GroupSession:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _ranges(numbers: list[int]) -> list[str]:
    """Return ascending numbers as ranges, such as `1 to 3`."""
    found: list[list[int]] = []
    for each in numbers:
        if found and found[-1][-1] == each - 1:
            found[-1].append(each)
        else:
            found.append([each])
    return [f"{each[0]} to {each[-1]}" if len(each) > 1 else str(each[0]) for each in found]
