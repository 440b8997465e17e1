"""Seal a recording when its program has ended. Loaded while the program runs: its imports are slow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from replaydbg.config import user_cache_directory
from replaydbg.errors import CannotRecord, Corrupt, ReplaydbgError
from replaydbg.launch.process import Ended
from replaydbg.log.container import seal
from replaydbg.log.live_directory import remove_live
from replaydbg.log.sealed.origin import own_key
from replaydbg.log.sealed.store_blocks import common_in
from replaydbg.record.caches.block_cache import BlockCache
from replaydbg.record.caches.sources import keep_beside, packed_sources
from replaydbg.record.end_facts import describe_end, log_was_made
from replaydbg.record.hiding import hidden_sources, hiding_of
from replaydbg.record.place import why_no_log
from replaydbg.record.result import RecordResult
from replaydbg.record.snapshots import finish_snapshots
from replaydbg.store.directory import following_path, sealed_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.sealed.group_blocks import Common

NOT_STARTED = 126
"""The exit code of the program's process if it cannot make the log (EXIT_NOT_STARTED in core.h); programs may use
it, too.
"""


_REMOVED = "it was removed while the program ran"


def is_removed(live: Path) -> bool:
    """Whether somebody, perhaps the program itself, has removed the recording while it was made."""
    return not (live / "header.json").exists()


def remove_following(live: Path) -> None:
    """Remove what a program that was killed on its way from a checkpoint has left beside its live directory."""
    following = following_path(live)
    with suppress(OSError, ReplaydbgError):  # it hides nothing
        if following.is_dir() and not following.is_symlink():
            remove_live(following)


def check_begun(live: Path, ended: Ended) -> None:
    """Raise CannotRecord if the log could not be made: then the program did not run."""
    if log_was_made(live):
        return
    if ended.status == NOT_STARTED:
        reason = why_no_log(live)
    elif ended.status < 0:
        reason = f"signal {-ended.status} ended its interpreter before it began"
    else:
        reason = "its interpreter ended before it began"
    raise CannotRecord(str(live), reason, signal=max(-ended.status, 0))


def _world_compressor() -> Callable[[bytes], bytes] | None:
    key = own_key()
    return BlockCache(str(user_cache_directory() / "world"), key).compress if key is not None else None


STAYS = " and stays a directory"
"""The end of the sentence with the reason for which a recording could not be sealed."""


def seal_recording(
    live: Path,
    ended: Ended,
    seconds: float,
    *,
    unknown: str | None = None,
    common: Common | None = None,
    store: Path | None = None,
    secrets: Iterable[bytes] = (),
) -> RecordResult:
    """Write how the program ended, and turn the live directory into one file; if that fails it stays unchanged.

    `unknown` is the reason why its status is not known, if it is not; `common` is for a group that has others, too;
    `store` is the store that it is in, whose recordings share blocks, None if it is to be one file; `secrets` are those
    of the other processes of its group. Raises
    CannotRecord, and leaves nothing, if the log could not be made: then the program did not run.
    """
    if is_removed(live):
        return RecordResult(live, ended.status, 0, 0, [], None, _REMOVED)
    try:
        check_begun(live, ended)
    except CannotRecord:
        remove_live(live)
        raise
    remove_following(live)
    target = sealed_path(live)
    problem, may_have_secrets = None, True
    end = describe_end(live, ended, seconds)
    end["reason"] = end["reason"] or unknown
    try:
        hiding = hiding_of(live, secrets)
        may_have_secrets = hiding is not None
        if hiding is not None and not hiding.recipients:
            text = "no key can be used (see `replaydbg key`), so its secrets are masked for good"
            end["notes"].append({"kind": "secrets", "text": text, "count": 1})
        end["snapshots"] = finish_snapshots(live, hiding)
        # Should this process be killed while it seals, the directory has what is known already.
        (live / "end.json").write_text(json.dumps(end), encoding="utf-8")
        sources = packed_sources(live, end["sources"])
        if hiding is not None:
            sources = hidden_sources(sources, hiding)
        with common_in(store if common is None else None) as shared:
            wanted = shared if common is None else common
            seal(live, target, end, sources, compress_world=_world_compressor(), common=wanted, hiding=hiding)
    except (OSError, Corrupt) as error:  # of a forked child, its parent's recording may be damaged
        why = error.reason if isinstance(error, Corrupt) else error.strerror
        problem = f"it could not be sealed ({why}){STAYS}"
        if may_have_secrets:
            problem += ", in which its secrets are in the clear"
        target = live
        with suppress(OSError, ReplaydbgError):  # the disk may be full
            end["sources"] = keep_beside(live)
            (live / "end.json").write_text(json.dumps(end), encoding="utf-8")
    size = target.stat().st_size if target.is_file() else sum(path.stat().st_size for path in target.rglob("*"))
    return RecordResult(
        target, ended.status, end["events"], size, end["notes"], end["reason"], problem, end.get("snapshots")
    )
