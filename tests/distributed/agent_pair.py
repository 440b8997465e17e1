"""Two agents with a channel in each direction, for the tests of agents."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from replaydbg.distributed import Agent, AgentSystem, Channel


class Pair:
    """Two agents with a channel in each direction."""

    def __init__(self, make: Callable[[], object] = queue.Queue) -> None:
        self.states: dict[str, Any] = {"X": [], "Y": []}
        system = self.system = AgentSystem()
        self.x: Agent = system.agent("X", lambda: self.states["X"])
        self.y: Agent = system.agent("Y", lambda: self.states["Y"])
        self.carriers = make(), make()
        self.to_y: Channel = system.channel(self.x, self.y, self.carriers[0])
        self.to_x: Channel = system.channel("Y", "X", self.carriers[1])
