"""How the replay of each process of a group compares with its recording."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Judged:
    """The processes of some groups."""

    processes: int = 0
    """With a row in a group."""
    recorded: int = 0
    equal: int = 0
    """Replayed up to the last event, with the recorded ending."""
    cut: Counter[str] = field(default_factory=Counter)
    """Recordings that end before their process did: the reasons. What is there is equal."""
    wrong: list[str] = field(default_factory=list)
    """Replays that differ, each with its difference."""
    why_not: Counter[str] = field(default_factory=Counter)
    """Why processes are not recorded."""
    events: int = 0

    def add(self, other: "Judged") -> None:
        """Add the processes of another one."""
        self.processes += other.processes
        self.recorded += other.recorded
        self.equal += other.equal
        self.events += other.events
        self.cut += other.cut
        self.why_not += other.why_not
        self.wrong += other.wrong


def judged(rows: Sequence[Mapping[str, Any]], replays: Mapping[int, Mapping[str, Any]]) -> Judged:
    """Judge the processes that `ps --json` lists by what `replay --json` returned of each."""
    found = Judged(processes=len(rows))
    replaced = {each["parent"] for each in rows if each["how"] == "exec"}
    for row in rows:
        if not row["recording"]:
            found.why_not[row["why_not"]] += 1
            continue
        found.recorded += 1
        found.events += row["events"] or 0
        facts = replays.get(row["number"])
        difference = "it was not replayed" if facts is None else _difference(row, facts)
        if difference or facts is None:
            found.wrong.append(f"process {row['number']} ({' '.join(row['argv'] or [])[:80]}): {difference}")
        elif _is_whole(row, facts["replay"], is_replaced=row["number"] in replaced):
            found.equal += 1
        else:
            found.cut[facts["replay"]["ended_early"]] += 1
    return found


def _difference(row: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    replay = facts["replay"]
    if facts["error"] or row["problem"]:
        return str(facts["error"] or row["problem"])
    if replay["divergence"] or replay["drift"]:
        return f"{replay['divergence']} {replay['drift']}"
    if replay["is_whole"]:
        status = row["status"]
        return "" if status in (None, replay["status"]) else f"it ended with {replay['status']}, recorded {status}"
    return "" if replay["events"] == row["events"] else f"replayed up to {replay['events']} of {row['events']}"


def _is_whole(row: Mapping[str, Any], replay: Mapping[str, Any], *, is_replaced: bool) -> bool:
    """Whether the recording has all that the process did: it was killed or replaced, or its end is not known."""
    return bool(replay["is_whole"] or is_replaced or row["status"] is None or row["status"] < 0)
