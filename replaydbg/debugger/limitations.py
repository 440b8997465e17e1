"""The limitations of a session: slow seeks, and where values may differ from those of the recorded run."""

from __future__ import annotations

from contextlib import closing
from functools import cached_property

from replaydbg.debugger.first_pass.first_pass import FirstPass
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.engine.travel import MOST


class Limitations:
    """Why a seek may take longer than it should, and where values may differ from those of the recorded run."""

    def __init__(self, view: ReplayView, first_pass: FirstPass) -> None:
        self._view, self._pass = view, first_pass

    @property
    def doubt(self) -> str:
        """That a signal handler may have run elsewhere than in the recorded run; empty: there is no doubt."""
        return self._pass.doubt

    @property
    def divergence(self) -> str:
        """That the run differed from the recording, so that nothing later can be seen; empty: it did not."""
        if not self._pass.has_diverged:
            return ""
        index = self._view.index
        return f"{index.ended}. Nothing after event {index.events:,} can be seen.".replace("the", "The", 1)

    @property
    def text(self) -> str:
        """All limitations as one paragraph; empty: there is none."""
        return " ".join(filter(None, (self.doubt, self._few_checkpoints(), self._recursion)))

    @cached_property
    def _recursion(self) -> str:
        """Whether the recursion limit was reached through C code: 3.11 counts more levels there while it traces."""
        # Decoding a million exceptions takes seconds: not to learn at each opening that none of them is of this type.
        if not self._view.header.python.version.startswith("3.11") or b"RecursionError" not in self._view.index.raises:
            return ""
        raised = [each for each in self._view.index.raised if each.type == "RecursionError"]
        if not raised:
            return ""
        # Python's own calls count one each: then there are as many frames as the limit allows.
        for each in {raised[0].count: raised[0], raised[-1].count: raised[-1]}.values():
            with closing(self._view.travel.at(each.count)) as worker:
                depth = worker.look().depth
                if self._view.ask.judge(worker, f"__import__('sys').getrecursionlimit() > {depth}") == "":
                    at = self._view.index.moment(each.count)
                    return (
                        f"At {at.event}:{at.step} the recursion limit was reached through C code, which happens "
                        "earlier in Python 3.11 while lines are counted. Values that depend on the depth may differ "
                        "here; `replaydbg replay` is exact."
                    )
        return ""

    def _few_checkpoints(self) -> str:
        travel = self._view.travel
        reasons = {
            "number": f"{MOST} is the maximum",
            "memory": f"together they may use {travel.memory.allowed >> 20:,} MB of memory (--memory)",
        }
        if travel.is_limited_by not in reasons:
            return ""
        reason = reasons[travel.is_limited_by]
        return f"Checkpoints are {travel.spacing:.2g} s apart because {reason}: a seek may take that long."
