"""A secret that one process of a group has received is masked in the recordings of all."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.children import completed
from tests.harness.replays import passed_on, run

SECRETS = [f"Gr0up-zz-Vault{number}" for number in range(1, 4)]

PASSES = {
    "words": "subprocess.run([sys.executable, '-c', 'import sys; print(len(sys.argv[1]))', password], check=True)",
    "stdin": "subprocess.run([sys.executable, '-c', 'print(len(input()))'], input=password.encode(), check=True)",
    "environment": (
        "subprocess.run([sys.executable, '-c', 'import os; print(len(os.environ[\"OTHER\"]))'],"
        " env={**os.environ, 'OTHER': password}, check=True)"
    ),
    "queue": "context = multiprocessing.get_context('spawn')\n        through_a_queue(context, password)",
    "forked": "context = multiprocessing.get_context('fork')\n        through_a_queue(context, password)",
}
PROGRAM = """
import multiprocessing, os, subprocess, sys

def take(queue):
    print("got", queue.get())

def through_a_queue(context, password):
    queue = context.Queue()
    process = context.Process(target=take, args=(queue,))
    process.start()
    queue.put(password)
    process.join()

if __name__ == "__main__":
    # The process lives on: each child's recording is sealed while its log grows.
    for name in sys.argv[1:]:
        with open(name) as file:
            password = file.read().partition("=")[2].strip()
        {passes}
"""
RECEIVES = """
import subprocess, sys
code = "import sys; print(open(sys.argv[1]).read())"
found = subprocess.run([sys.executable, "-c", code, sys.argv[1]], capture_output=True, check=True)
print("a child has read", found.stdout.decode().partition("=")[2].strip())
"""

# Each generation reads a secret of its own, behind what the one before has written, and passes it to the next ones;
# the last passes all of them back to the first. A long file is a content of the log, a short one is in it. Parents end
# first: their recordings are sealed while those of their children are being written.
GENERATIONS = """
import os, sys, time
reader, writer = os.pipe()
known, first = [], os.getpid()
for name in sys.argv[1:]:
    parent = os.getppid()
    with open(name) as file:
        known.append(file.read().splitlines()[0].partition("=")[2])
    if os.fork():
        break
else:
    os.write(writer, " ".join(known).encode())
if os.getpid() == first:
    print("all of them are", os.read(reader, 1000).decode())
else:
    while os.getppid() == parent:
        time.sleep(0.05)
    time.sleep(1)
"""


def recorded(text: str, tmp_path: Path) -> tuple[Path, str, Mapping[str, str]]:
    place = tmp_path / "place"
    place.mkdir()
    (place / "prog.py").write_text(text)
    names = []
    for number, secret in enumerate(SECRETS):
        names.append(f"{number}.env")
        (place / names[-1]).write_text(f"DB_PASSWORD={secret}" + "\n# more" * (10_000 if number == 1 else 0))
    env = {**passed_on(), "PATH": os.environ["PATH"], "XDG_DATA_HOME": str(tmp_path / "data")}
    command = tool.record(sys.executable, tmp_path / "r", ["prog.py", *names], options=["--children=python"])
    found = run(command, cwd=place, env=env)
    assert found.status == 0, found
    completed(tmp_path / "r.rdbgs")
    return tmp_path / "r.rdbgs", found.stdout, env


def in_clear(group: Path) -> list[str]:
    """Return the names of files and sections that have one of the secrets."""
    found = []
    for path in group.rglob("*"):
        pieces = {str(path.name): path.read_bytes()} if path.is_file() else {}
        if path.suffix == ".rdbg":
            with open_recording(path) as recording:
                assert not recording.damage
                pieces |= {f"{path.name}, {name}": b"".join(recording.pieces(name)) for name in recording.sections}
        found += [name for name, data in pieces.items() if any(each.encode() in data for each in SECRETS)]
    return found


@pytest.mark.parametrize("kind", PASSES)
def test_children_have_it_masked(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group, output, env = recorded(PROGRAM.replace("{passes}", PASSES[kind]), tmp_path)

    assert len(list(group.glob("*.rdbg"))) >= 4
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "somebody else"))
    assert in_clear(group) == []
    replayed = run([sys.executable, "-m", "replaydbg", "replay", "-q", str(group)], cwd=tmp_path, env=env)
    assert (replayed.status, sorted(replayed.stdout.split())) == (0, sorted(output.split())), replayed


@pytest.mark.parametrize("text", [RECEIVES, GENERATIONS], ids=["one child", "generations"])
def test_a_parent_has_it_masked(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group, output, env = recorded(text, tmp_path)

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "somebody else"))
    assert in_clear(group) == []
    assert SECRETS[0] in output
    replayed = run([sys.executable, "-m", "replaydbg", "replay", "-q", str(group)], cwd=tmp_path, env=env)
    assert (replayed.status, replayed.stdout) == (0, output), replayed


CUT_BY_A_FORK = """
import os
fd = os.open("token", os.O_RDONLY)
first = os.read(fd, 120)
if child := os.fork():
    print(os.waitpid(child, 0)[1])
else:
    print(len(first + os.read(fd, 500)))
"""


def test_a_parent_has_received_its_beginning_and_a_child_its_end(tmp_path: Path) -> None:
    token = "ghp_qZ7xKw93LmP0vT5yRb2Nd8aUcEfGhIjKlMnO"
    (tmp_path / "token").write_text("x" * 100 + " " + token + " y" * 100)
    (tmp_path / "prog.py").write_text(CUT_BY_A_FORK)
    env = {**passed_on(), "XDG_DATA_HOME": str(tmp_path / "data")}

    made = run(
        tool.record(sys.executable, tmp_path / "r", ["prog.py"], options=["--children=fork"]), cwd=tmp_path, env=env
    )

    assert made.status == 0, made
    completed(tmp_path / "r.rdbgs")
    parts = {token[at : at + 8].encode() for at in range(len(token) - 7)}
    for path in sorted((tmp_path / "r.rdbgs").glob("*.rdbg")):
        with open_recording(path, with_secrets=False) as recording:
            for name in recording.sections:
                data = b"".join(recording.pieces(name))
                assert not [part for part in parts if part in data], (path.name, name)
    replayed = run(
        [sys.executable, "-m", "replaydbg", "replay", "-q", str(tmp_path / "r.rdbgs")], cwd=tmp_path, env=env
    )
    assert (replayed.status, replayed.stdout) == (0, made.stdout), replayed


READ_IN_TURN = """
import os, subprocess, sys, time
files = [os.open(name, os.O_RDONLY) for name in ("one", "two")]
text = b""
for _ in range(4):
    for fd in files:
        data = os.read(fd, 1 << 19)
        text += data if fd == files[0] else b""
found = text.partition(b'"password": "')[2].partition(b'"')[0]
# The child's recording is sealed while this process lives.
subprocess.run([sys.executable, "-c", "print(len(input()))"], input=found, check=True)
time.sleep(1)
"""


def test_what_only_two_contents_together_are_is_masked_in_all(tmp_path: Path) -> None:
    """Contents are stored in pieces of 1 MiB: first one of the first file, then one of the second."""
    secret = "Qb3dEf6hIj9kLm2Np5Rs8Tu1"
    before = '{"password": "' + secret[:12]
    text = (
        ("x y\n" * (1 << 18))[: (1 << 20) - len(before)] + before + secret[12:] + '", "x": 1}\n' + "u v\n" * (1 << 18)
    )
    (tmp_path / "one").write_text(text)
    (tmp_path / "two").write_text("z\n" * (1 << 20))
    (tmp_path / "prog.py").write_text(READ_IN_TURN)
    env = {**passed_on(), "PATH": os.environ["PATH"], "XDG_DATA_HOME": str(tmp_path / "data")}
    command = tool.record(sys.executable, tmp_path / "r", ["prog.py"], options=["--children=python"])

    made = run(command, cwd=tmp_path, env=env)

    assert (made.status, made.stdout) == (0, "24\n"), made
    completed(tmp_path / "r.rdbgs")
    for path in sorted((tmp_path / "r.rdbgs").glob("*.rdbg")):
        with open_recording(path, with_secrets=False) as recording:
            for name in recording.sections:
                data = b"".join(recording.pieces(name))
                assert not [at for at in range(17) if secret[at : at + 8].encode() in data], (path.name, name)
