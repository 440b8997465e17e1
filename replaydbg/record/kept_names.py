"""Names of ends of channels in a group that goes on: the kernel has other ones for them than when they were recorded.

The processes that go on name them as before. A Python that one of them starts inherits some, and learns the names here.
"""

from __future__ import annotations

from replaydbg.classes import NamedTuple
from replaydbg.events.transfers import KINDS, Endpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class KeptName(NamedTuple):
    """The name of an end that the kernel knows by another one."""

    device: int
    inode: int
    """Both as `stat` returns them today."""
    end: Endpoint
    """As it was recorded."""

    def as_json(self) -> list[int | str]:
        """Return it for `orders.json`."""
        return [self.device, self.inode, *self.end]


def as_boot(facts: Sequence[int | str]) -> tuple[int | bytes, ...]:
    """Return the core's order for a name of `orders.json`."""
    device, inode, *rest = facts
    end = Endpoint(*rest)  # type: ignore[arg-type]
    texts = [each.encode("utf-8", "surrogateescape") for each in (end.own, end.peer, end.path, end.peer_path)]
    return (int(device), int(inode), KINDS.index(end.kind) + 1, end.cookie, end.peer_pid, *texts)
