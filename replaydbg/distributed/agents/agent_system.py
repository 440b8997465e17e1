"""Declare agents and the channels between them."""

from __future__ import annotations

from replaydbg.distributed.agents.agent import Agent
from replaydbg.distributed.agents.channel import Channel
from replaydbg.distributed.agents.snapshot_collector import Collectors, Route
from replaydbg.distributed.agents.transports import transport_of
from replaydbg.errors import BadDeclaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from replaydbg.distributed.agents.marker import Marker

_LONGEST = 100
"""Characters of a name: a marker has it, and must be shorter than what a pipe takes at once (512 bytes in POSIX)."""


class AgentSystem:
    """Agents, and the channels between them. All are declared before the first snapshot is begun."""

    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}
        self._channels: dict[str, Channel] = {}
        self._collectors = Collectors()

    def agent(self, name: str, state: Callable[[], Any]) -> Agent:
        """Declare an agent; `state` returns its local state, of which each snapshot keeps a deep copy.

        `state` is called while the agent can neither send nor receive; it should only read. Raises BadDeclaration.
        """
        self._check_open()
        _check_name(name, "an agent")
        if name in self._agents:
            raise BadDeclaration(f"agent {name!r} is declared already")
        if not callable(state):
            raise BadDeclaration(f"agent {name!r} needs a function that returns its state (got {type(state).__name__})")
        made = self._agents[name] = Agent(name, state, self._collectors)
        self._collectors.agents.append(name)
        return made

    def channel(self, sender: Agent | str, receiver: Agent | str, over: object, *, name: str | None = None) -> Channel:
        """Declare a channel from one agent to another.

        `over` carries its messages, and nothing else: a `queue.Queue`, `queue.SimpleQueue` or `asyncio.Queue`; a
        `Stream` for sockets and pipes; `Functions` or `AsyncFunctions` for anything else that is first in, first out.
        `name` is `X->Y` if it is not given. Raises BadDeclaration.
        """
        self._check_open()
        source, target = self._declared(sender), self._declared(receiver)
        route = Route(f"{source.name}->{target.name}" if name is None else name, source.name, target.name)
        _check_name(route.name, "a channel", longest=2 * _LONGEST + 2)
        if route.name in self._channels:
            raise BadDeclaration(f"channel {route.name!r} is declared already: give the second one a name=")
        transport = transport_of(over, route.name)
        self._check_unused(transport.ends(), route.name)
        made = self._channels[route.name] = Channel(route, transport, self._note_loss)
        source.outgoing.append(made)
        target.incoming.append(made)
        self._collectors.routes.append(route)
        return made

    def _declared(self, agent: Agent | str) -> Agent:
        name = agent.name if isinstance(agent, Agent) else agent
        found = self._agents.get(name)
        # An agent of another system may have the same name.
        if found is None or agent not in (name, found):
            raise BadDeclaration(f"no agent {name!r} is declared here (declared: {', '.join(self._agents) or 'none'})")
        return found

    def _check_open(self) -> None:
        if self._collectors.have_begun:
            raise BadDeclaration("agents and channels have to be declared before the first snapshot is begun")

    def _check_unused(self, ends: tuple[object, object], name: str) -> None:
        for other in self._channels.values():
            theirs = other.transport.ends()
            # A socket sends for one channel and receives for another: they are two directions. Compared by equality,
            # since a bound method is a new object each time.
            if any(mine == their for mine, their in zip(ends, theirs, strict=True)):
                raise BadDeclaration(f"channel {name!r} cannot go over what carries {other.name!r} already")

    def _note_loss(self, channel: str, marker: Marker, reason: str) -> None:
        collector = self._collectors.find(marker)
        if collector is not None:
            collector.note_loss(channel, reason)


def _check_name(name: object, what: str, longest: int = _LONGEST) -> None:
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= longest:
        raise BadDeclaration(f"the name of {what} has 1 to {longest} printable characters (got {name!r})")
