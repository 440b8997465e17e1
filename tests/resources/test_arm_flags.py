"""Flags of open() in a recording from 64-bit ARM, read on any machine: four have other numbers there than on x86-64."""

from __future__ import annotations

import pytest

from replaydbg.events import linux
from replaydbg.events.records import Event, Site
from replaydbg.events.values import Value
from replaydbg.render.resources_text import resources_tables
from replaydbg.resources.follow import apply_event
from replaydbg.resources.frozen import frozen
from replaydbg.resources.kinds import OpenedDirectory, OpenedFile, Resources
from replaydbg.resources.process_state import ProcessState

SOABIS = {"arm": "cpython-311-aarch64-linux-gnu", "x86-64": "cpython-311-x86_64-linux-gnu"}
DIRECTORY = {"arm": 0o40000, "x86-64": 0o200000}
NO_FOLLOW = {"arm": 0o100000, "x86-64": 0o400000}
DIRECT = {"arm": 0o200000, "x86-64": 0o40000}
LARGE_FILE = {"arm": 0o400000, "x86-64": 0o100000}
UNNAMED = {"arm": 0o20040000, "x86-64": 0o20200000}


def _after(processor: str, *calls: tuple[str, tuple[Value, ...], Value]) -> Resources:
    """Return the resources after calls, each as gate, arguments and outcome."""
    state = ProcessState("/home", SOABIS[processor])
    for number, (gate, arguments, outcome) in enumerate(calls, 1):
        site = Site(gate, "prog.py", "main", number, 0)
        apply_event(state, Event(number, 0, site, arguments, False, outcome, None, None, 0))
    return frozen(state, (), len(calls), 0)


@pytest.mark.parametrize("processor", SOABIS)
def test_a_directory_is_one(processor: str) -> None:
    found = _after(processor, ("posix.open", ("/etc", DIRECTORY[processor]), 3))

    opened = found.by_number()[3]
    assert isinstance(opened, OpenedDirectory)
    assert opened.handle.flags == DIRECTORY[processor]


@pytest.mark.parametrize("processor", SOABIS)
def test_a_direct_file_is_a_file_and_named_direct(processor: str) -> None:
    found = _after(processor, ("posix.open", ("data", linux.O_RDWR | DIRECT[processor]), 3))

    opened = found.by_number()[3]
    assert isinstance(opened, OpenedFile)
    assert "data direct" in str(resources_tables(found, "/home")[0].rows[-1])


@pytest.mark.parametrize("processor", SOABIS)
def test_a_file_that_follows_no_link_is_not_direct(processor: str) -> None:
    found = _after(processor, ("posix.open", ("data", NO_FOLLOW[processor]), 3))

    assert found.by_number()[3].handle.flags == NO_FOLLOW[processor]
    assert "direct" not in str(resources_tables(found, "/home")[0].rows[-1])


@pytest.mark.parametrize("processor", SOABIS)
def test_an_unnamed_file_has_no_name(processor: str) -> None:
    found = _after(processor, ("posix.open", ("/tmp", linux.O_RDWR | UNNAMED[processor]), 3))

    opened = found.by_number()[3]
    assert isinstance(opened, OpenedFile)
    assert opened.is_deleted


@pytest.mark.parametrize("processor", SOABIS)
def test_what_the_kernel_adds_by_itself_is_left_out(processor: str) -> None:
    opens: tuple[str, tuple[Value, ...], Value] = ("posix.open", ("data", linux.O_RDONLY), 3)
    answer = linux.O_RDONLY | LARGE_FILE[processor] | linux.O_APPEND

    found = _after(processor, opens, ("fcntl.fcntl", (3, linux.F_GETFL, 0), answer))

    assert found.by_number()[3].handle.flags == linux.O_APPEND


@pytest.mark.parametrize("processor", SOABIS)
def test_the_flag_that_fcntl_may_change_is_that_of_the_processor(processor: str) -> None:
    opens: tuple[str, tuple[Value, ...], Value] = ("posix.open", ("data", linux.O_RDONLY | NO_FOLLOW[processor]), 3)

    found = _after(processor, opens, ("fcntl.fcntl", (3, linux.F_SETFL, DIRECT[processor]), 0))

    assert found.by_number()[3].handle.flags == NO_FOLLOW[processor] | DIRECT[processor]
