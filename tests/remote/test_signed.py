"""A signature goes with its recording, and a recording that was changed on the way is refused."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.remote.far import index_of, make_programs, pieces, replaydbg, url

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen (of OpenSSH) is not installed"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_programs(tmp_path)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True, timeout=60)
    return tmp_path


def signature(folder: Path, name: str) -> object:
    shown = replaydbg(folder, "info", "--json", name)
    assert shown.status == 0, shown
    return json.loads(shown.stdout)["signature"]


@pytest.mark.parametrize("program", ["program.py", "forks.py"])
def test_it_is_sent_and_fetched(program: str, folder: Path) -> None:
    assert replaydbg(folder, "record", "-q", program).status == 0
    assert replaydbg(folder, "sign", "run-1", "--key", "key").status == 0
    assert replaydbg(folder, "push", "run-1", url(folder)).status == 0

    assert replaydbg(folder, "pull", f"{url(folder)}/run-1").stdout == b"run-2\n"

    assert signature(folder, "run-1") is not None
    assert signature(folder, "run-2") == signature(folder, "run-1")
    assert signature(folder, f"{url(folder)}/run-1") == signature(folder, "run-1")
    assert replaydbg(folder, "replay", "run-2").status == 0


def test_a_signature_of_another_recording_is_refused(folder: Path) -> None:
    """Whoever can write to the remote store can exchange pieces and index, and not the signature."""
    for _ in range(2):
        replaydbg(folder, "record", "-q", "program.py")
    replaydbg(folder, "sign", "run-1", "--key", "key")
    shutil.copy(folder / "store" / "run-1.rdbg.sig", folder / "store" / "run-2.rdbg.sig")
    (folder / "store" / "run-2.rdbg.sig").rename(folder / "kept")
    assert replaydbg(folder, "push", "run-2", url(folder)).status == 0
    unsigned = index_of(folder, "run-2")
    assert not unsigned.is_signed
    (folder / "kept").rename(folder / "store" / "run-2.rdbg.sig")

    refused = replaydbg(folder, "push", "run-2", url(folder), "--as", "forged")

    assert refused.status != 0
    assert b"does not match" in refused.stderr
    assert len(list((folder / "far" / "recordings").iterdir())) == 1
    assert pieces(folder)
    assert os.path.lexists(folder / "store" / "run-2.rdbg")
