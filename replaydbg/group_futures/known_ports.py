"""The ports of listening sockets for which the kernel chose them: what they accept in the whole run shows them."""

from __future__ import annotations

from dataclasses import replace

from replaydbg.recovery.recovery_line import LineMember, RecoveryLine
from replaydbg.resources.kinds import OpenedSocket, OpenResource, Resources, SocketState, Unknown


def with_ports(line: RecoveryLine, member: LineMember, resources: Resources) -> Resources:
    """Return the resources of a process in a cut, in which its listening sockets have their addresses."""
    table = line.ends.descriptors(member.number, member.position)
    accepted = {}
    for history in line.ends.histories.values():
        for listener, contacts in history.accepts.items():
            names = (line.endpoint(each) for each in contacts)
            owns = [name.own for name in names if name is not None and name.kind == "tcp"]
            if owns:
                accepted[listener] = owns[0]

    def known(opened: OpenResource) -> OpenResource:
        if not isinstance(opened, OpenedSocket) or opened.state is not SocketState.LISTENING:
            return opened
        ends = (table[number] for number in opened.handle.numbers if number in table)
        own = next((accepted[end] for end in ends if end in accepted), "")
        address = address_of(own) if isinstance(opened.bound, Unknown) else None
        return replace(opened, bound=address) if address is not None else opened

    return replace(resources, opened=tuple(known(each) for each in resources.opened))


def address_of(text: str) -> tuple[str, int] | None:
    """Return an address of TCP by the text of an endpoint; None: it is none."""
    host, colon, port = text.rpartition(":")
    return (host.strip("[]"), int(port)) if colon and port.isdecimal() else None
