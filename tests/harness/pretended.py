"""Interpreters of other systems, pretended: what those lack is taken out of this one, and nothing of the core is found.

`python -m tests.harness.pretended KIND WORD...` runs a command line of replaydbg there. It shows what would be missing
or would stop a command; files, locks and processes are still those of Linux.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import select
import signal
import socket
import sys
import sysconfig
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_LINUX_ONLY: dict[ModuleType, str] = {
    os: "memfd_create sched_getaffinity sched_setaffinity pidfd_open eventfd copy_file_range splice getrandom "
    "O_PATH O_NOATIME O_DIRECT posix_fadvise posix_fallocate",
    fcntl: "F_OFD_SETLK F_OFD_SETLKW F_OFD_GETLK F_ADD_SEALS F_GET_SEALS F_SEAL_SHRINK F_SEAL_GROW F_SEAL_WRITE "
    "F_SEAL_SEAL F_SETPIPE_SZ F_GETPIPE_SZ",
    signal: "SIGSTKFLT SIGPWR SIGRTMIN SIGRTMAX SIGPOLL",
    socket: "SO_PEERCRED SO_DOMAIN AF_NETLINK AF_PACKET AF_VSOCK SOCK_CLOEXEC SOCK_NONBLOCK",
    select: "epoll",
}
"""Names that the standard library has on Linux alone."""


class _WithoutCore(MetaPathFinder):
    """Finds no compiled module of ours, and no readline."""

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Refuse those names; the next finder is asked for others."""
        if fullname.startswith("replaydbg.native._") or fullname == "readline":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def _no_proc(event: str, args: tuple[Any, ...]) -> None:
    path = args[0] if event in ("open", "os.listdir", "os.scandir") and args else None
    if isinstance(path, str) and path.startswith("/proc"):
        raise FileNotFoundError(2, "No such file or directory", path)


def pretend(kind: str) -> None:
    """Make this process one of `kind`: `darwin`; `pure`, a supported interpreter for which there is no core;
    or `without age`, one that has a core and not the library of age.
    """
    if kind == "without age":
        sys.modules["pyrage"] = None  # type: ignore[assignment]
        return
    sysconfig.get_config_vars()  # it reads a file that is named after the platform
    for name in ("subprocess", "tempfile", "shutil", "asyncio", "socketserver", "ssl", "zipfile", "getpass"):
        importlib.import_module(name)  # what those have looked at is not pretended
    lists = os.listdir

    def without_core(path: Any = ".") -> list[Any]:
        return [each for each in lists(path) if not str(each).startswith("_core.")]

    os.listdir = without_core
    sys.meta_path.insert(0, _WithoutCore())
    if kind == "pure":
        return
    sys.addaudithook(_no_proc)
    for module, names in _LINUX_ONLY.items():
        for name in filter(partial(hasattr, module), names.split()):
            delattr(module, name)
    sys.platform = kind


if __name__ == "__main__":
    pretend(sys.argv[1])
    from replaydbg.cli.main import main

    del sys.argv[1]
    sys.exit(main())
