"""The connection to a dask scheduler: the only module that imports dask.distributed in the command's process."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from replaydbg.cluster.scheduling import worker_side
from replaydbg.cluster.tasks import JsonObject
from replaydbg.errors import SchedulerLost, UsageError

CONNECT = 10.0
"""Seconds that a scheduler has to answer at first."""
_CALL = "__import__('importlib').import_module('replaydbg.cluster.scheduling.worker_side').{}(text)"
"""What a worker evaluates.

A function of ours as a pickle would end a worker that has no replaydbg: dask reads it in the connection to the
scheduler, and closes that.
"""
_SCHEMES = ("tcp", "tls", "ws", "wss")
"""The kinds of connections that reach another machine; certificates for `tls` come from dask's configuration."""
_CLOSE = 3.0
"""Seconds for saying goodbye."""


def check_address(address: str) -> None:
    """Raise UsageError if it is not the address of a scheduler."""
    try:
        parts = urlsplit(address)
        is_one = parts.scheme in _SCHEMES and bool(parts.hostname) and bool(parts.port)
    except ValueError:
        is_one = False
    if not is_one:
        raise UsageError(f"--scheduler must be an address such as tcp://host:8786 (got {address!r}).")


def _silence() -> None:
    """Keep dask from printing between our lines: what matters of its log is an error of ours."""
    for name, logger in logging.root.manager.loggerDict.items():
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio") and isinstance(logger, logging.Logger):
            logger.handlers = [logging.NullHandler()]
            logger.propagate = False


class SchedulerLink:
    """A connection; used from several threads."""

    def __init__(self, address: str) -> None:
        """Connect. Raises UsageError if dask.distributed is missing or the address is none, SchedulerLost."""
        check_address(address)
        try:
            from distributed import Client
        except ImportError as error:
            raise UsageError(
                f"--scheduler needs dask.distributed ({error}): install it with `pip install 'replaydbg[cluster]'`."
            ) from None
        self.address = address
        _silence()
        # Of versions that differ between client, scheduler and workers: what matters to a replay is compared by us.
        warnings.filterwarnings("ignore", module="distributed")
        try:
            self._client: Any = Client(address, timeout=CONNECT, set_as_default=False, name="replaydbg")
        except (OSError, TimeoutError):
            raise SchedulerLost(address, f"did not answer within {CONNECT:g} s") from None
        except Exception as error:  # noqa: BLE001 - another server there: the handshake fails in many ways
            raise SchedulerLost(address, f"is not a dask scheduler ({type(error).__name__}: {error})") from None

    @property
    def is_up(self) -> bool:
        """Whether the scheduler is connected at present."""
        return bool(self._client.status == "running")

    def submit(
        self,
        order: JsonObject,
        *,
        key: str,
        workers: Sequence[str],
        is_strict: bool,
        priority: int,
    ) -> Any:
        """Return the dask future of `run_task` on one of `workers` (empty: any; others too unless `is_strict`)."""
        return self._client.submit(
            eval,
            _CALL.format("run_task"),
            {"text": json.dumps(order)},
            key=key,
            workers=list(workers) or None,
            allow_other_workers=bool(workers) and not is_strict,
            priority=priority,
            pure=False,
        )

    def give(self, worker: str, pieces: dict[str, bytes]) -> str:
        """Have a worker put pieces into its cache; return why it cannot. One that is gone takes nothing."""
        found = self._client.run(worker_side.receive, pieces, workers=[worker], on_error="return").get(worker, "")
        return found if isinstance(found, str) else ""

    def fitness(self, needs: JsonObject) -> dict[str, Any]:
        """Return for each worker what `fitness` returned or raised there."""
        words = (_CALL.format("fitness"), {"text": json.dumps(needs)})
        return dict(self._client.run(eval, *words, on_error="return"))

    def threads(self) -> dict[str, int]:
        """Return the addresses of the workers, and how many tasks each runs at once. Raises OSError."""
        return {str(address): int(threads) for address, threads in self._client.nthreads().items()}

    def cancel(self, futures: Iterable[Any]) -> None:
        """Cancel dask futures, where the scheduler is still there."""
        with suppress(Exception):
            self._client.cancel(list(futures), force=True)

    def close(self) -> None:
        """Disconnect: the scheduler drops what is left."""
        with suppress(Exception):
            self._client.close(timeout=_CLOSE)
