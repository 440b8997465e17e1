"""The common part of tasks about commits, for another machine: how commits are tested, and the user's checkout."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from replaydbg.cluster.tasks import ContentSink, JsonObject
from replaydbg.cluster.workplace import Workplace, task_environment
from replaydbg.commits.surroundings import Surroundings
from replaydbg.commits.worktrees import Worktrees


@dataclass(frozen=True, eq=False)
class SentCheckout:
    """The common part of the orders of one search."""

    question: JsonObject
    """How commits are tested."""
    around: Surroundings
    """The checkout."""
    taken_along: tuple[Path, ...]
    """Files and directories of the checkout that are copied into each worktree."""
    commits: tuple[str, ...]
    """The full names of all commits that tasks may name."""

    @cached_property
    def _data(self) -> bytes:
        facts = {
            "question": self.question,
            "root": str(self.around.root),
            "prefix": self.around.prefix,
            "files": sorted(self.around.files),
            "installed": [str(path) for path in self.around.installed()],
            # Others may be secrets, or paths of this machine.
            "environment": {name: text for name, text in os.environ.items() if name.startswith("PYTHON")},
        }
        return json.dumps(facts, sort_keys=True).encode("utf-8", "surrogateescape")

    def order(self, sink: ContentSink) -> JsonObject:
        """Return the fields of each order from which `checkout_of` makes it again. Raises GitFailed and OSError."""
        root, taken = self.around.root, self.taken_along
        return {
            "context": sink.data("context.json", self._data),
            "repository": sink.repository(root, self.commits),
            "taken": sink.tree(root, _files_below(root, taken)) if taken else None,
        }


def _files_below(root: Path, paths: Sequence[Path]) -> list[str]:
    found = []
    for path in paths:
        whole = [path] if not path.is_dir() else [each for each in path.rglob("*") if not each.is_dir()]
        found += [str(each.relative_to(root)) for each in whole]
    return found


class ReceivedCheckout(NamedTuple):
    """The same where a task runs."""

    question: JsonObject
    around: Surroundings
    worktrees: Worktrees


def checkout_of(order: JsonObject, place: Workplace) -> ReceivedCheckout:
    """Return the common part of an order. Raises TaskImpossible."""
    context = json.loads(place.path(order["context"]).read_text(encoding="utf-8", errors="surrogateescape"))
    around = Surroundings(
        Path(context["root"]),
        context["prefix"],
        context["files"],
        base=task_environment() | context["environment"],
        installed=[Path(each) for each in context["installed"]],
        copies=place.path(order["taken"]) if order["taken"] is not None else None,
    )
    return ReceivedCheckout(context["question"], around, place.worktrees(order["repository"]))
