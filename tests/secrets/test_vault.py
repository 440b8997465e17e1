"""What was masked comes back as it was, however much it is."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.log.sealed import vault
from replaydbg.log.sealed.vault import masked_section, read_masked, read_secrets, secrets_section
from replaydbg.secrets.age_keys import own_identity, recipient_of
from replaydbg.secrets.patches import Patches


def patches_of(draw: Random, count: int, most: int = 40) -> Patches:
    found: Patches = {}
    for name in ("header", "content"):
        at = 0
        found[name] = []
        for _ in range(count):
            at += draw.choice((0, 1, 300, 1 << 20))
            found[name].append((at, draw.randbytes(draw.randint(1, most))))
            at += len(found[name][-1][1])
    return {name: each for name, each in found.items() if each}


@pytest.fixture
def recipient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    identity = own_identity(make=True)
    assert identity is not None
    return recipient_of(identity)


# Python's JSON reader of recordings takes no more than half a million objects.
@pytest.mark.parametrize("count", [0, 1, 7, 300_000])
def test_the_inverse(count: int, recipient: str) -> None:
    patches = patches_of(Random(count), count)
    masked = read_masked(masked_section(patches, [recipient]))

    assert masked is not None
    assert masked.recipients == (recipient,)
    assert masked.places == {name: [(at, len(data)) for at, data in each] for name, each in patches.items()}
    assert read_secrets(secrets_section(patches, [recipient]), masked) == patches


@settings(deadline=None)
@given(st.integers(0, 1 << 32))
def test_damage_is_none(seed: int) -> None:
    draw = Random(seed)
    data = bytearray(masked_section(patches_of(draw, 3), ["age1"]))
    data[draw.randrange(len(data))] = draw.randrange(256)
    masked = read_masked(bytes(data))

    for each in () if masked is None else masked.places.values():
        ends = [0, *(at + length for at, length in each)]
        assert all(length > 0 and at >= end for (at, length), end in zip(each, ends, strict=False))


def test_a_name_that_is_no_text_is_damage(recipient: str) -> None:
    data = b'{"recipients": ["age1"], "places": {"\\ud800": "AAE="}}'
    masked = read_masked(data)

    assert masked is not None
    assert read_secrets(secrets_section({"content": [(0, b"x")]}, [recipient]), masked) is None


def test_too_much_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault, "MOST", 100)
    with pytest.raises(OSError, match="too many secrets") as refused:
        masked_section(patches_of(Random(1), 100), ["age1"])
    assert refused.value.errno == errno.EFBIG
