"""A recording that grows is masked in parts, and no part has a piece of a secret that goes on in the next one."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from replaydbg.log.edit.cut_log import GrowingFile
from replaydbg.log.edit.growing_secrets import GrowingSecrets
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
