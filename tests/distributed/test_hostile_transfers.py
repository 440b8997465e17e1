"""Whatever a recording claims, matching ends, takes no byte twice, and says where it is not certain."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.distributed.causal_order import CausalOrder
from replaydbg.distributed.happens_before import ProgramStart, edges_between
from replaydbg.distributed.matching.columns import Member
from replaydbg.distributed.matching.matching import GroupMatching
from replaydbg.events.transfers import Endpoint, Transfer
from tests.distributed.model import columns_of

pytestmark = pytest.mark.slow

KINDS = ["pipe", "tcp", "udp", "unix", "unix-datagram", "output", "semaphore", "process", "signal", "file", "call"]
NAMES = ["1:2", "127.0.0.1:5", "0.0.0.0:5", "[::]:5", "", "7", "2", "-5:2", "/mp-1"]


@st.composite
def members(draw: st.DrawFn) -> list[Member]:
    found = []
    for process in range(1, draw(st.integers(1, 3)) + 1):
        ends = [
            Endpoint(
                number,
                draw(st.sampled_from(KINDS)),
                draw(st.sampled_from(NAMES)),
                draw(st.sampled_from(NAMES)),
                draw(st.integers(0, 1)),
                "",
            )
            for number in range(1, draw(st.integers(1, 3)) + 1)
        ]
        begun = 0
        transfers = []
        for _ in range(draw(st.integers(0, 12))):
            begun += draw(st.integers(0, 2))
            transfers.append(
                Transfer(
                    draw(st.sampled_from([0, begun + 1, begun + 2, 1 << 62])),
                    begun,
                    draw(st.integers(0, 9) | st.just((1 << 64) - 1)),
                    draw(st.integers(1, len(ends))),
                    draw(st.sampled_from(["send", "receive"])),
                    draw(st.integers(0, 3) | st.just((1 << 48) - 1)),
                    draw(st.integers(0, 2)),
                    draw(st.sampled_from(NAMES)),
                    draw(st.integers(0, 9)) == 0,
                    draw(st.integers(0, 9)) == 0,
                    draw(st.integers(0, 9)) == 0,
                )
            )
        branch = draw(st.integers(0, 3))
        found.append(
            Member(process, ends, columns_of(transfers), branch, draw(st.integers(0, 4)), 0, draw(st.integers(0, 9)))
        )
    return found


@given(members())
def test_nothing_is_taken_twice(forged: list[Member]) -> None:
    group = GroupMatching(forged)
    for channel in group.channels:
        found = group.match(channel)
        given_away: Counter[int] = Counter()
        taken: Counter[int] = Counter()
        for at in range(len(found.segments)):
            segment = found.segments[at]
            given_away[segment.send] += segment.length
            taken[segment.receive] += segment.length
            assert 0 <= segment.receive < len(found.receives)
            assert 0 <= segment.send < len(found.sends) + len(found.sends.open)
        assert all(
            count == found.receives.length[receive] or count < found.receives.length[receive]
            for receive, count in taken.items()
        )
        if not channel.is_datagram:
            sources = set(found.sends.sources)
            assert all(count <= found.sends.length[send] for send, count in given_away.items() if send not in sources)
        assert found.lost >= 0
        assert found.from_nowhere >= 0
    CausalOrder(edges_between(group, [ProgramStart(1, 1 << 62, 2), ProgramStart(3, -1, 2)]))
