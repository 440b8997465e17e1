"""The numbers of Linux by which recordings are read are those of the machine that records them."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import sysconfig

import pytest

from replaydbg.events import linux

_TABLES = {"SIGNALS", "FAMILIES", "SOCKET_TYPES"}
_NAMES = sorted(name for name in vars(linux) if name.isupper() and not name.startswith("_") and name not in _TABLES)


@pytest.mark.parametrize("name", _NAMES)
def test_a_number_is_that_of_this_machine(name: str) -> None:
    own = [getattr(module, name) for module in (os, fcntl, socket, errno, signal) if hasattr(module, name)]

    assert own, f"no module of this Python has {name}"
    assert {int(each) for each in own} == {getattr(linux, name)}


def test_flags_that_depend_on_the_processor_are_those_of_this_machine() -> None:
    known = linux.open_flags(sysconfig.get_config_var("SOABI"))

    assert known.direct == os.O_DIRECT
    assert (known.directory, known.no_follow) == (os.O_DIRECTORY, os.O_NOFOLLOW)
    assert known.unnamed == os.O_TMPFILE


def test_those_of_arm_and_of_x86_64_are_the_same_bits_in_another_order() -> None:
    """See arch/arm64/include/uapi/asm/fcntl.h and include/uapi/asm-generic/fcntl.h in Linux."""
    arm = linux.open_flags("cpython-311-aarch64-linux-gnu")

    assert (oct(arm.directory), oct(arm.no_follow)) == ("0o40000", "0o100000")
    assert (oct(arm.direct), oct(arm.large_file)) == ("0o200000", "0o400000")
    assert arm.unnamed == 0o20000000 | arm.directory
    assert sorted(arm[:4]) == sorted(linux.open_flags("cpython-311-x86_64-linux-gnu")[:4])


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
