"""The numbers of Linux by which recordings are read are those of the machine that records them."""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import signal
import socket

import pytest

from replaydbg.events import linux

_ON_ARM = {"O_DIRECT", "O_DIRECTORY", "O_NOFOLLOW", "O_TMPFILE"}
"""Flags that have other numbers there."""
_TABLES = {"SIGNALS", "FAMILIES", "SOCKET_TYPES"}
_NAMES = sorted(name for name in vars(linux) if name.isupper() and not name.startswith("_") and name not in _TABLES)


@pytest.mark.parametrize("name", _NAMES)
def test_a_number_is_that_of_this_machine(name: str) -> None:
    if platform.machine() != "x86_64" and name in _ON_ARM:
        pytest.skip("the table has the number of x86-64")
    own = [getattr(module, name) for module in (os, fcntl, socket, errno, signal) if hasattr(module, name)]

    assert own, f"no module of this Python has {name}"
    assert {int(each) for each in own} == {getattr(linux, name)}


def test_each_signal_has_its_name() -> None:
    assert {each.value: each.name for each in signal.Signals} == linux.SIGNALS


def test_families_and_types_of_sockets_have_their_names() -> None:
    families = {each.value: each.name for each in socket.AddressFamily}
    assert families.items() <= linux.FAMILIES.items()
    flags = (socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC)
    assert {each.value: each.name for each in socket.SocketKind if each not in flags} == linux.SOCKET_TYPES


def test_every_status_of_wait_is_read_as_python_reads_it() -> None:
    for status in range(1 << 16):
        has_ended = os.WIFEXITED(status) or os.WIFSIGNALED(status)
        assert linux.exit_status(status) == (os.waitstatus_to_exitcode(status) if has_ended else None), status
