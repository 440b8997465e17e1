"""Keep the recordings of a finished search that are worth it, and delete the others."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from replaydbg.bisect.graph import CommitGraph
from replaydbg.commits.question import CommitSearchResult
from replaydbg.commits.state import State
from replaydbg.events.verdict import Verdict
from replaydbg.store.directory import SEALED, Store


def settle(found: CommitSearchResult, history: CommitGraph, state: State, store: Store) -> CommitSearchResult:
    """Move the recordings that are worth keeping to the store, and delete the others."""
    ends = {Verdict.BAD: found.suspects[-1].name, Verdict.GOOD: _last_good(found, history)}
    names = dict.fromkeys(ends, "")
    for look in found.looks:
        kept = ""
        if look.recording and look.commit == ends.get(look.verdict):
            name = f"bisect-{look.commit[:10]}-{look.verdict.value}"
            target = store.directory / f"{name}{SEALED}"
            if Path(look.recording) != target and Path(look.recording).exists():
                store.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
                # The store may be on another file system.
                shutil.move(look.recording, target)
            if target.exists():
                names[look.verdict], kept = name, str(target)
        state.looks[look.commit] = replace(look, recording=kept)
    state.write()
    shutil.rmtree(state.recordings, ignore_errors=True)
    looks = tuple(state.looks.values())
    return replace(found, looks=looks, bad_recording=names[Verdict.BAD], good_recording=names[Verdict.GOOD])


def _last_good(found: CommitSearchResult, history: CommitGraph) -> str:
    """Return the nearest commit before the suspects that a look found good."""
    good = {look.commit for look in found.looks if look.verdict is Verdict.GOOD}
    waiting, seen = [found.suspects[0].name], set()
    for name in waiting:
        if name in good:
            return name
        if name not in seen:
            seen.add(name)
            waiting += history.parents.get(name, ())
    return found.good
