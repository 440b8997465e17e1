"""Confirm with real runs of the recorded program what replays found for two neighbouring commits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from replaydbg.commits.looking import CommitLooker
from replaydbg.commits.question import CommitLook, Question
from replaydbg.commits.surroundings import Surroundings
from replaydbg.errors import UsageError, clause
from replaydbg.events.verdict import Verdict
from replaydbg.launch.program_python import is_this
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.origin import is_own

LookerMaker: TypeAlias = Callable[[Question, Surroundings], CommitLooker]
"""Creates the looker that runs a program at commits."""


class RealRuns:
    """Runs the program of a recording without a replay, in worktrees."""

    def __init__(self, question: Question, files: frozenset[str], make: LookerMaker) -> None:
        """Find out how the program was started. Raises UsageError for a recording that somebody else made."""
        assert question.replay is not None and question.recorded_root is not None, question
        if not is_own(question.replay):
            raise UsageError(
                f"--confirm runs the program of {str(question.replay)!r} outside the fence, and you did not record it."
            )
        root = question.recorded_root
        with open_recording(question.replay) as recording:
            header = recording.header
        inside = Path(header.cwd)
        prefix = str(inside.relative_to(root)) if inside.is_relative_to(root) else ""
        leading = {"module": ("-m",), "command": ("-c",)}.get(header.kind, ())
        executable = header.python.executable  # of our own recording
        python = () if is_this(executable) or not Path(executable).exists() else (executable,)
        program = (*python, *header.python.flags, *leading, header.target, *header.argv[1:])
        around = Surroundings(root, "" if prefix == "." else prefix, files, base=header.env)
        asked = replace(
            question, replay=None, check="", program=program, runs=question.confirming, hash_seed=header.hash_seed
        )
        self._looker = make(asked, around)
        self._runs = question.confirming

    def check(self, culprit: str, parents: Sequence[str]) -> tuple[list[CommitLook], str]:
        """Return the results of real runs at a culprit and its good parents, and a sentence that sums them up."""
        cancel = threading.Event()
        bad = self._looker.look(culprit, passes=self._runs, cancel=cancel)
        if bad.verdict is not Verdict.BAD:
            what = f"cannot be tested ({bad.why})" if bad.verdict is Verdict.UNDECIDED else f"did not fail ({bad.why})"
            return [], f"Real runs do not confirm it: the program itself {what} at {culprit[:10]}."
        self._looker.expected = bad.failure
        looks = [bad]
        for parent in parents:
            look = self._looker.look(parent, passes=self._runs, cancel=cancel)
            looks.append(look)
            if look.verdict is Verdict.BAD:
                why = f"the program itself fails there: {look.why}"
                return [replace(look, why=why)], f"{parent[:10]} passes in a replay, but {clause(why)}."
            if look.verdict is Verdict.UNDECIDED:
                return [bad], f"Real runs do not confirm it: {parent[:10]} cannot be tested ({look.why})."
        runs = "run" if self._runs == 1 else "runs"
        return looks, (
            f"Confirmed by real runs: the program fails at {culprit[:10]} and passes {self._runs} {runs} before it."
        )
