"""Recordings of failing tests have no secrets in the clear either, though they share blocks, and have one run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import zstandard

from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.sections import SealedFile
from tests.harness.plugin_runs import TIMEOUT, WAIT
from tests.harness.replays import passed_on, run

pytestmark = pytest.mark.slow

SECRETS = {
    "environment": "hunter2hunter2",
    "file": "Pa55wordPa55word",
    "source": "sk_live_0123456789abcdefghij",
    "file, by a pattern of the user": "ACME-0123456789",
    "source, by a pattern of the user": "ACME-abcdefghij",
}
TESTS = """\
import os, pathlib
import keys
def test_one():
    assert os.environ["APP_TOKEN"] == pathlib.Path("conf").read_text(), keys.KEY[:3]
def test_two():
    data = pathlib.Path("conf").read_text() + keys.KEY
    assert data == os.environ["APP_TOKEN"], data
"""


OTHERS = """\
import os, pathlib
import keys
def test_other():
    assert pathlib.Path("conf").read_text()
def test_another():
    assert os.environ["APP_TOKEN"]
KEPT = []
def test_bad():
    KEPT.append("before " + pathlib.Path("conf").read_text())
    assert os.environ["APP_TOKEN"] == pathlib.Path("conf").read_text(), keys.KEY[:3]
"""


PIECES = """\
import os
def test_pieces():
    secret = os.environ["DB_PASSWORD"].encode()
    reader, writer = os.pipe()
    for cut in (2, 7, 12, 22):
        for piece in (secret[:cut], secret[cut:]):
            os.write(writer, piece)
            os.read(reader, 100)
    assert 0
"""


def test_pieces_of_a_secret_are_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "qZ7xKw93-LmP0vT5yRb2_Nd8"
    (tmp_path / "test_it.py").write_text(PIECES)
    env = {**passed_on(), "PATH": os.environ["PATH"], "XDG_DATA_HOME": str(tmp_path / "data"), "DB_PASSWORD": secret}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--replaydbg=on"]

    done = run([*command, f"--replaydbg-wait={WAIT}"], cwd=tmp_path, env=env, timeout=TIMEOUT)

    assert done.status == 1, done
    (path,) = tmp_path.rglob("rec.rdbg")
    parts = {secret[at : at + 4].encode() for at in range(len(secret) - 3)}
    with open_recording(path, with_secrets=False) as recording:
        found = {name: b"".join(recording.pieces(name)) for name in recording.sections}
    assert [(name, part) for name, data in found.items() for part in parts if part in data] == []
    assert len(found.get("content", b"")) < 1 << 20  # the plugin looks at the log of its own process
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with open_recording(path) as recording:
        recording.check()
        assert recording.damage == ()
        assert secret.encode()[:12] in b"".join(recording.pieces("log"))
    replayed = run([sys.executable, "-m", "replaydbg", "replay", "-q", str(path)], cwd=tmp_path, env=env)
    assert replayed.status in (1, 6), replayed


SHOWN_PIECES = """\
import os
reader, writer = os.pipe()
os.write(writer, os.environ["DB_PASSWORD"].encode())
first = os.read(reader, 10)
def test_pieces():
    second = os.read(reader, 100)
    assert second == len(first)
"""


def test_pieces_that_an_assertion_shows_are_masked(tmp_path: Path) -> None:
    """The first one was received when the file was imported, before the test's own part of the log."""
    secret = "qZ7xKw93-LmP0vT5yRb2_Nd8"
    (tmp_path / "test_it.py").write_text(SHOWN_PIECES)
    env = {**passed_on(), "PATH": os.environ["PATH"], "XDG_DATA_HOME": str(tmp_path / "data"), "DB_PASSWORD": secret}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--replaydbg=retain-on-failure"]

    done = run([*command, f"--replaydbg-wait={WAIT}"], cwd=tmp_path, env=env, timeout=TIMEOUT)

    assert done.status == 1, done
    assert secret[:10] in done.stdout
    kept = [path for path in (tmp_path / "test-results").rglob("*") if path.is_file()]
    assert {"meta.json", "rec.rdbg"} <= {path.name for path in kept}
    parts = [secret[at : at + 6].encode() for at in (0, 4, 10, 18)]
    assert [(path.name, part) for path in kept for part in parts if part in _content(path)] == []
    with open_recording(next(tmp_path.rglob("rec.rdbg")), with_secrets=False) as recording:
        data = b"".join(piece for name in recording.sections for piece in recording.pieces(name))
    assert [part for part in parts if part in data] == []


def _content(path: Path) -> bytes:
    """Return what is in a file; of a block that is compressed, that."""
    data = path.read_bytes()
    is_compressed = data.startswith(b"\x28\xb5\x2f\xfd")
    return zstandard.ZstdDecompressor().decompressobj().decompress(data) if is_compressed else data


@pytest.mark.parametrize(("source", "left_out"), [(TESTS, [0, 0]), (OTHERS, [2])])
def test_no_secret_is_in_what_is_kept(
    source: str, left_out: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "test_it.py").write_text(source)
    (tmp_path / "keys.py").write_text(
        f"KEY = {SECRETS['source']!r}\nNAME = '{SECRETS['source, by a pattern of the user']}'\n"
        + "# "
        + "x" * 3000
        + "\n"
    )
    (tmp_path / "conf").write_text(f"password = '{SECRETS['file']}'\n{SECRETS['file, by a pattern of the user']}\n")
    (tmp_path / "pyproject.toml").write_text("[tool.replaydbg]\nsecret_patterns = ['ACME-[0-9a-z]+']\n")
    env = {**passed_on(), "PATH": os.environ["PATH"], "XDG_DATA_HOME": str(tmp_path / "data")}
    env |= {"APP_TOKEN": SECRETS["environment"], "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--replaydbg=retain-on-failure",
        f"--replaydbg-wait={WAIT}",
    ]
    done = run(command, cwd=tmp_path, env=env, timeout=TIMEOUT)

    assert done.status == 1, done
    results = tmp_path / "test-results"
    recordings = sorted(results.rglob("*.rdbg"))
    assert len(recordings) == len(left_out), sorted(results.rglob("*.rdbg"))
    metas = [json.loads(path.read_bytes()) for path in results.rglob("meta.json")]
    assert sorted(each["left_out"] for each in metas) == left_out
    for path in (path for path in results.rglob("*") if path.is_file()):
        assert not [each for each in SECRETS.values() if each.encode() in _content(path)], path
    for path in recordings:
        sealed = SealedFile(path)
        for name in sealed.names():
            stored = b"".join(sealed.stored_pieces(name))
            assert not [each for each in SECRETS.values() if each.encode() in stored], (path, name)
        with open_recording(path) as recording:
            recording.check()
            assert recording.damage == ()
            assert SECRETS["environment"] in recording.header.env.values()
        replayed = run([sys.executable, "-m", "replaydbg", "replay", "-q", str(path)], cwd=tmp_path, env=env)
        assert replayed.status in (1, 6), replayed  # it ends after the test
        verified = run([sys.executable, "-m", "replaydbg", "verify", str(path)], cwd=tmp_path, env=env)
        assert verified.status == 0, verified
