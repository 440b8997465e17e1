"""A recording that grows is masked in parts, and no part has a piece of a secret that goes on in the next one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from replaydbg.log.edit.cut_log import GrowingFile
from replaydbg.log.edit.growing_secrets import GrowingSecrets
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import PIECE
from replaydbg.log.sealed.shared import STEP, BlockStore
from replaydbg.secrets.patches import patched


class _Parts(BlockStore):
    """Keeps the parts as they come."""

    def entry(self, raw: bytes, compress: object = None) -> bytes:
        return raw

    def inline(self, raw: bytes) -> bytes:
        return raw


@pytest.mark.parametrize("encoding", ["ascii", "utf-16-le", "utf-32-be"])
@pytest.mark.parametrize("edge", [STEP, PIECE])
@pytest.mark.parametrize("length", [40, 9_000, 60_000])
def test_a_secret_at_the_edge_of_parts(length: int, edge: int, encoding: str, tmp_path: Path) -> None:
    secret = "".join(Random(length).choices("abcdefgh01234567", k=length))
    written = secret.encode(encoding)
    before = b"." * (edge - len(written) + 20 if len(written) < edge else 0)
    data = before + written + b"." * STEP
    (tmp_path / "log").write_bytes(data)
    secrets = GrowingSecrets([secret.encode()], [])
    file = GrowingFile(tmp_path / "log", _Parts(tmp_path), secrets=secrets)

    masked = b"".join(part for _, part in file.blocks(len(data)))

    assert masked == before + b"*" * len(written) + b"." * STEP
    assert b"".join(patched([masked], secrets.hiding({"log": len(data)}).masks.patches["log"])) == data


def test_what_was_searched_for_secrets_is_not_read_again(tmp_path: Path) -> None:
    """A session with thousands of tests is searched for each of them."""
    data = b"." * LOG_HEADER + Random(1).randbytes(4 << 20)
    served = 0

    def pieces(name: str, start: int = 0) -> Iterator[bytes]:
        nonlocal served
        if name == "log":
            served += len(data) - start
            yield data[start:]

    secrets = GrowingSecrets([b"correct horse battery"], [])
    secrets.learn_pieces(pieces, {"log": len(data), "content": 0})
    assert served >= len(data)
    served, data = 0, data + b"." * 1000
    secrets.learn_pieces(pieces, {"log": len(data), "content": 0})

    assert 1000 <= served < 200_000
