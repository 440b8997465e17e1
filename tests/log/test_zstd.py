"""Compressed bytes are the same to each library that a Python may have for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.log.sealed import zstd

# 3.14 can be built without its own.
_PART = pytest.importorskip("_zstd" if sys.version_info >= (3, 14) else "backports.zstd._zstd")
_STANDARD = zstd._Standard(_PART)
_PACKAGE = zstd._Package(zstandard)
_CODECS: list[zstd._Codec] = [_STANDARD, _PACKAGE]
_DATA = st.binary(max_size=2000).flatmap(lambda part: st.integers(0, 300).map(lambda times: part * times))


@pytest.fixture(params=_CODECS, ids=["standard", "package"])
def codec(request: pytest.FixtureRequest) -> Iterator[zstd._Codec]:
    yield request.param


@given(_DATA, st.sampled_from(_CODECS), st.sampled_from(_CODECS), st.sampled_from([1, 3, 9]))
def test_what_one_compresses_the_other_expands(
    data: bytes, writer: zstd._Codec, reader: zstd._Codec, level: int
) -> None:
    packed = writer.compressor(level)(data)

    assert reader.content_size(packed) == len(data)
    assert reader.expand(packed, len(data) + 1, 27) == data


@given(_DATA, st.integers(0, 1000), st.integers(0, 1 << 20))
def test_both_give_the_same_of_a_part(data: bytes, cut: int, most: int) -> None:
    packed = _PACKAGE.compressor(1)(data)
    packed = packed[: max(0, len(packed) - cut)]

    found = [each.expand(packed, most, 21) for each in _CODECS]

    assert found[0] == found[1]
    assert data.startswith(found[0]) and len(found[0]) <= most


def test_one_compressor_makes_many_frames(codec: zstd._Codec) -> None:
    compress = codec.compressor(1)

    packed = [compress(bytes([number]) * 500) for number in range(50)]

    assert [codec.expand(each, 501, 21) for each in packed] == [bytes([number]) * 500 for number in range(50)]


def test_what_follows_a_frame_is_not_read(codec: zstd._Codec) -> None:
    compress = codec.compressor(1)

    for size in (5, 1 << 20):  # the second is that of a block
        assert codec.expand(compress(bytes(size)) + compress(b"second"), size + 1, 21) == bytes(size)


def test_a_bomb_gives_no_more_than_is_asked_for(codec: zstd._Codec) -> None:
    assert codec.expand(codec.compressor(3)(bytes(64 << 20)), 1000, 27) == bytes(1000)


def test_a_frame_that_looks_too_far_back_is_refused(codec: zstd._Codec) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=24)
    made = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = made.compress(bytes(20 << 20)) + made.flush()

    assert len(codec.expand(packed, 25 << 20, 24)) == 20 << 20
    with pytest.raises(ValueError, match=r".+"):
        codec.expand(packed, 25 << 20, 21)


@pytest.mark.parametrize("data", [b"", b"no frame at all", bytes(100)])
def test_what_is_no_frame_has_no_size(codec: zstd._Codec, data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        codec.content_size(data)


def test_without_the_package_the_backport_is_found() -> None:
    """As on PyPy, for which the package has no wheels."""
    code = (
        "import sys; sys.modules['zstandard'] = sys.modules['zstandard.backend_c'] = None\n"
        "from replaydbg.log.sealed import zstd\n"
        "zstd._compiled = lambda: None\n"
        "print(zstd.expand(zstd.compressor(1)(b'some data'), 100, 21), type(zstd._codec()).__name__)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)

    assert (done.stdout, done.stderr) == ("b'some data' _Standard\n", "")
