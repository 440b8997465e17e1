"""Messages between processes that were recorded together: pure functions over their transfers.

The names imported here are for users: global snapshots of agents inside a program, recorded or not.
It needs nothing else of this package, and the tool needs nothing of it.
"""

from replaydbg.distributed.agents.agent import Agent
from replaydbg.distributed.agents.agent_system import AgentSystem
from replaydbg.distributed.agents.byte_channels import Stream
from replaydbg.distributed.agents.channel import Channel
from replaydbg.distributed.agents.copies import Uncopied
from replaydbg.distributed.agents.global_snapshot import GlobalSnapshot
from replaydbg.distributed.agents.global_state import ChannelState, GlobalState, LocalState
from replaydbg.distributed.agents.transports import AsyncFunctions, AsyncTransport, Functions, Transport
from replaydbg.errors import BadDeclaration, ChannelMisuse, SnapshotIncomplete

__all__ = [
    "AgentSystem",
    "Agent",
    "Channel",
    "GlobalSnapshot",
    "GlobalState",
    "LocalState",
    "ChannelState",
    "Uncopied",
    "Stream",
    "Functions",
    "AsyncFunctions",
    "Transport",
    "AsyncTransport",
    "BadDeclaration",
    "ChannelMisuse",
    "SnapshotIncomplete",
]
