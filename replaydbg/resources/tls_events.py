"""Follow what TLS contexts load from files."""

from __future__ import annotations

from collections.abc import Callable

from replaydbg.events.records import Event
from replaydbg.resources.event_values import argument
from replaydbg.resources.kinds import TlsLoad, Unknown
from replaydbg.resources.process_state import ProcessState

FILE_ARGUMENTS = {
    "_ssl._SSLContext.load_cert_chain": ("certfile", "keyfile"),
    "_ssl._SSLContext.load_verify_locations": ("cafile", "capath"),
    "_ssl._SSLContext.load_dh_params": ("path",),
    "_ssl._SSLContext.keylog_filename": ("path",),
    "_ssl._SSLContext.set_default_verify_paths": (),
}
"""By gate: the arguments that are files, in their order; `native/resume/contexts.c` has the same ones."""
_SETS = "_ssl._SSLContext.keylog_filename"


def _load(to: ProcessState, event: Event) -> None:
    if event.gate == _SETS and len(event.arguments or ()) < 2:
        return  # the attribute was only read
    files = (_file(to, argument(event, at, name)) for at, name in enumerate(FILE_ARGUMENTS[event.gate], 1))
    to.tls_loads.append(TlsLoad(to.origin(event), event.gate.rpartition(".")[2], tuple(files)))


def _file(to: ProcessState, value: object) -> str | Unknown | None:
    if isinstance(value, str | bytes):
        return to.absolute(value)
    return None if value is None else Unknown("the log does not show its path")


TLS_ACTIONS: dict[str, Callable[[ProcessState, Event], None]] = dict.fromkeys(FILE_ARGUMENTS, _load)
"""The effects of calls that returned, by gate."""
