"""Run a command as in a container: `python inside.py PROFILE COMMAND...`.

PROFILE is a file of the form of Docker's profiles for seccomp. As in a container of Docker's, there are the default
capabilities of its documentation, and no way to get further privileges.
"""

import ctypes
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyseccomp

# Numbers of include/uapi/linux/capability.h, and the names of those that Docker keeps:
# https://docs.docker.com/engine/containers/run/#runtime-privilege-and-linux-capabilities
_KEPT = {
    "CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_FOWNER": 3, "CAP_FSETID": 4, "CAP_KILL": 5, "CAP_SETGID": 6,
    "CAP_SETUID": 7, "CAP_SETPCAP": 8, "CAP_NET_BIND_SERVICE": 10, "CAP_NET_RAW": 13, "CAP_SYS_CHROOT": 18,
    "CAP_MKNOD": 27, "CAP_AUDIT_WRITE": 29, "CAP_SETFCAP": 31,
}  # fmt: skip
_LAST = 40
_NO_NEW_PRIVS, _DROP_FROM_BOUNDING_SET, _VERSION_3 = 38, 24, 0x20080522
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def _applies(rule: Mapping[str, Any]) -> bool:
    """Return whether a rule is meant for this machine, its kernel and the capabilities of a container."""
    includes, excludes = rule.get("includes") or {}, rule.get("excludes") or {}
    machine = _MACHINES[os.uname().machine]
    kernel = [int(part) for part in os.uname().release.split(".")[:2]]
    return (
        machine in includes.get("arches", [machine])
        and machine not in excludes.get("arches", [])
        and all(each in _KEPT for each in includes.get("caps", []))
        and not any(each in _KEPT for each in excludes.get("caps", []))
        and kernel >= [int(part) for part in includes.get("minKernel", "0.0").split(".")]
    )


def filter_of(profile: Mapping[str, Any]) -> pyseccomp.SyscallFilter:
    """Return the filter that a profile describes; calls that this libseccomp does not know get its default answer."""
    found = pyseccomp.SyscallFilter(pyseccomp.ERRNO(profile.get("defaultErrnoRet", 1)))
    for rule in filter(_applies, profile["syscalls"]):
        is_allowed = rule["action"] == "SCMP_ACT_ALLOW"
        action = pyseccomp.ALLOW if is_allowed else pyseccomp.ERRNO(rule.get("errnoRet", 1))
        for name in rule["names"]:
            try:
                found.add_rule(action, name, *map(_argument, rule.get("args") or []))
            except (OSError, ValueError):
                continue
    return found


def _argument(given: Mapping[str, Any]) -> pyseccomp.Arg:
    operation = getattr(pyseccomp, given["op"].removeprefix("SCMP_CMP_"))
    return pyseccomp.Arg(given["index"], operation, given["value"], given.get("valueTwo", 0))


def _drop_capabilities() -> None:
    """Keep those of a container, if this user has them."""
    libc = ctypes.CDLL(None, use_errno=True)
    for number in set(range(_LAST + 1)) - set(_KEPT.values()):
        libc.prctl(_DROP_FROM_BOUNDING_SET, number, 0, 0, 0)
    mask = sum(1 << number for number in _KEPT.values())
    head = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    # Effective, permitted and inheritable, for the lower and the upper 32.
    data = (ctypes.c_uint32 * 6)(mask & 0xFFFFFFFF, mask & 0xFFFFFFFF, 0, mask >> 32, mask >> 32, 0)
    if os.geteuid() == 0 and libc.capset(ctypes.byref(head), ctypes.byref(data)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def main() -> None:
    """Become the command."""
    given = filter_of(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    _drop_capabilities()
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    given.load()
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
