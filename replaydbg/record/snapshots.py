"""Convert the snapshots taken during a recording into their stored form."""

from __future__ import annotations

import os
import select
import struct
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from replaydbg.errors import Corrupt
from replaydbg.launch.proc import has_proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from replaydbg.heap.snapshot import Snapshot
    from replaydbg.heap.storage.snapshot_series import SnapshotPacker
    from replaydbg.log.container import Hiding
    from replaydbg.log.edit.growing_secrets import GrowingSecrets
    from replaydbg.log.json_data import InvariantData, SnapshotData, SnapshotsData

_STATE = struct.Struct("<7Q")
"""As in heap_record.c: taken, done, failed, left out, total of the pauses and the longest, CPU time of the copies;
then process ids.
"""


_LONGEST = 130.0
"""Seconds: a copy of the program ends itself before that."""

_SHORT = 5.0
"""Time limit in seconds for a snapshot that is requested while the program goes on."""


def await_snapshots(live: Path) -> bool:
    """Wait for snapshots that are still being written; return whether some were taken."""
    state = live / "heap" / "state"
    if not state.is_file():
        return False
    _await(state)
    return True


def finish_snapshots(live: Path, hiding: Hiding | None = None) -> SnapshotsData | None:
    """Wait for snapshots that are still being written, compress them; return their entry for `end.json`, or None.

    With `hiding` they lose their secrets for good: a replay has them again.
    """
    if not await_snapshots(live):
        return None
    folder = live / "heap"
    taken, _, _, left_out, pause, longest, copies = _STATE.unpack_from(_state(folder / "state"))
    # Imported here: most recorded programs have no snapshots, and all wait for the sealing.
    from replaydbg.heap.storage.snapshot_series import SnapshotPacker

    listed = []
    series = SnapshotPacker()
    run = f"{live.name} {time.time_ns()}"
    mask = hiding.mask_snapshot if hiding is not None else None
    for path in sorted(folder.iterdir()):
        if path.name.isdigit():
            listed.append(_compress(path, run, series, mask))
        elif not path.name.endswith(".checks"):
            path.unlink()
    for path in folder.glob("*.checks"):
        path.unlink()
    kept = [each for each in listed if each is not None]
    return {
        "listed": kept,
        "failed": taken - len(kept),
        "left_out": left_out,
        "pause_ns": pause,
        "longest_pause_ns": longest,
        "copies_ns": copies,
    }


def snapshots_taken(live: Path) -> int:
    """Return the number of the last snapshot; 0: there is none."""
    try:
        return int(_STATE.unpack_from(_state(live / "heap" / "state"))[0])
    except FileNotFoundError:
        return 0


def read_snapshots(
    live: Path, numbers: Sequence[int], run: str, secrets: GrowingSecrets | None = None
) -> Iterator[tuple[SnapshotData, Snapshot]]:
    """Yield snapshots while the program goes on, with their entries for `end.json`; without failed ones.

    `run` names the run in them; `secrets` are masked for good. Raises OSError.
    """
    from replaydbg.heap.storage.raw_snapshot import masked_raw, read_raw

    if not (live / "heap" / "state").is_file():
        return
    _await(live / "heap" / "state", seconds=_SHORT)
    for number in numbers:
        path = live / "heap" / f"{number:06}"
        try:
            data = path.read_bytes()
            if secrets is not None:
                data = masked_raw(data, partial(secrets.masked, has_beginnings=True))
            snapshot = read_raw(data, str(path), run=run, is_trusted=True)
        except (FileNotFoundError, Corrupt):
            continue
        yield _facts(snapshot, path), snapshot


def _state(path: Path) -> bytes:
    return path.read_bytes().ljust(_STATE.size, b"\0")


def _await(path: Path, seconds: float = _LONGEST) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        data = _state(path)
        taken, done, failed, *_ = _STATE.unpack_from(data)
        if done + failed >= taken:
            return
        pids = struct.unpack(f"<{(len(data) - _STATE.size) // 8}Q", data[_STATE.size :])
        if not any(_is_alive(pid) for pid in pids if pid):
            return
        time.sleep(0.002)


def _is_alive(pid: int) -> bool:
    if not has_proc():
        return _has_not_ended(pid)
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X")


def _has_not_ended(pid: int) -> bool:
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        return not select.select([process], [], [], 0)[0]
    finally:
        os.close(process)


def _compress(
    path: Path, run: str, series: SnapshotPacker, mask: Callable[[bytes], bytes] | None
) -> SnapshotData | None:
    from replaydbg.heap.storage.raw_snapshot import read_raw

    data = path.read_bytes()
    try:
        snapshot = read_raw(mask(data) if mask is not None else data, str(path), run=run, is_trusted=True)
    except Corrupt:
        # Files of a copy that was killed in the middle: it counts as failed.
        path.unlink()
        return None
    packed = path.with_suffix(".packed")
    packed.write_bytes(series.pack(snapshot))
    packed.replace(path)
    return _facts(snapshot, path)


def _facts(snapshot: Snapshot, path: Path) -> SnapshotData:
    taken = snapshot.taken
    return {
        "number": taken.number,
        "event": taken.event,
        "name": taken.name,
        "reason": taken.reason,
        "time_ns": taken.time_ns,
        "objects": len(snapshot),
        "bytes": sum(snapshot.size),
        "is_cut": bool(snapshot.cut),
        "checks": _checks(path.with_name(f"{path.name}.checks")),
    }


def _checks(path: Path) -> list[InvariantData]:
    """Return the results of the invariants at a snapshot: whether each held, None if it could not be evaluated."""
    # Imported here: few programs have invariants, and all wait for the sealing.
    import ast

    try:
        checks = ast.literal_eval(path.read_text(encoding="utf-8"))
        return [{"name": str(name), "holds": holds, "text": str(text)} for name, holds, text in checks]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, SyntaxError, TypeError):
        return [{"name": "the invariants", "holds": None, "text": "their report cannot be read"}]
