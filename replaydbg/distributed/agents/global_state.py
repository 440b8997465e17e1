"""The result of a snapshot: the state of each agent, and the messages in each channel, as text and as JSON."""

from __future__ import annotations

from replaydbg.classes import dataclass
from replaydbg.distributed.agents.copies import Uncopied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SCHEMA_VERSION = 1
"""The number of the JSON form."""


@dataclass(frozen=True, slots=True)
class LocalState:
    """The state of one agent."""

    agent: str
    value: Any
    """The copy of what the agent's state function returned, or Uncopied."""


@dataclass(frozen=True, slots=True)
class ChannelState:
    """The messages in one channel: sent before the sender's state was recorded, and received after the receiver's."""

    channel: str
    sender: str
    receiver: str
    messages: tuple[Any, ...]
    """Copies in the order in which they were sent; Uncopied for one that cannot be copied."""
    waits: str
    """Why more may follow: what the channel waits for; empty if its recording has ended."""

    @property
    def is_complete(self) -> bool:
        """Whether the marker has arrived, so that no message is missing."""
        return not self.waits


@dataclass(frozen=True, slots=True)
class GlobalState:
    """The states and messages that a snapshot has recorded."""

    snapshot: str
    """The identity of the snapshot: `X#2` is the second one that agent X began."""
    agents: tuple[LocalState, ...]
    """The recorded states, in the order in which the agents were declared."""
    missing: tuple[str, ...]
    """The agents whose state has not been recorded."""
    channels: tuple[ChannelState, ...]
    """All channels, in the order in which they were declared."""

    @property
    def is_complete(self) -> bool:
        """Whether all states are recorded and all markers have arrived."""
        return not self.missing and not self.waiting

    @property
    def waiting(self) -> tuple[str, ...]:
        """The names of the channels whose recording has not ended."""
        return tuple(each.channel for each in self.channels if each.waits)

    @property
    def states(self) -> dict[str, Any]:
        """The recorded states by the names of the agents."""
        return {each.agent: each.value for each in self.agents}

    @property
    def in_flight(self) -> dict[str, tuple[Any, ...]]:
        """The messages by the names of their channels; an empty tuple for a channel without messages."""
        return {each.channel: each.messages for each in self.channels}

    def __str__(self) -> str:
        """Return a line for the snapshot, one for each agent, and one for each channel."""
        return "\n".join(self._lines())

    def as_dict(self) -> dict[str, Any]:
        """Return it in a form for `json.dumps`.

        Values that JSON does not have are shown by their `repr()`.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "snapshot": self.snapshot,
            "is_complete": self.is_complete,
            "agents": [{"agent": each.agent, "state": _plain(each.value)} for each in self.agents],
            "missing": list(self.missing),
            "channels": [
                {
                    "channel": each.channel,
                    "sender": each.sender,
                    "receiver": each.receiver,
                    "messages": [_plain(message) for message in each.messages],
                    "waits": each.waits or None,
                }
                for each in self.channels
            ],
        }

    def _lines(self) -> Iterator[str]:
        yield f"snapshot {self.snapshot}: {'complete' if self.is_complete else 'incomplete'}"
        for local in self.agents:
            yield f"{local.agent}: {_shown(local.value)}"
        for agent in self.missing:
            yield f"{agent}: not recorded"
        for each in self.channels:
            messages = ", ".join(map(_shown, each.messages))
            waits = f" ({each.waits})" if each.waits else ""
            yield f"{each.channel}: {messages or ('?' if each.waits else 'empty')}{waits}"


def _shown(value: Any) -> str:
    return value.reason if isinstance(value, Uncopied) else repr(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Uncopied):
        return {"uncopied": value.reason}
    if value is None or type(value) in (bool, int, str):
        return value
    # JSON has no infinity and no NaN.
    if type(value) is float and value - value == 0:
        return value
    if type(value) in (list, tuple):
        return [_plain(each) for each in value]
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _plain(each) for key, each in value.items()}
    return repr(value)
