"""A group is redacted as a whole, with the same pseudonyms in all of its processes; or a process and line are named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.distributed.matching.segments import Segment
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.sealed.sections import SealedFile
from tests.harness.children import completed
from tests.harness.waiting import wait_until
from tests.secrets.test_corpus import encodings
from tests.secrets.test_keys import Person

pytestmark = pytest.mark.slow

TOKEN = "hunter2Hunter2x"
BEGIN = """\
import base64, json, os, socket, subprocess, sys
token = os.environ.get("MY_TOKEN", "")
basic = base64.b64encode(f"user:{token}".encode())
texts = [token.encode(), b"Authorization: Basic " + basic, json.dumps({"password": token}).encode()]
texts.append(token.encode().hex().encode())
"""
# What a child sends, and what its parent does with it.
SENDS = """\
def send(write):
    for text in texts:
        write(text + b"\\n")
def take(read):
    got = b""
    while piece := read(1000):
        got += piece
    print(len(got), got.decode())
"""
PROGRAMS = {
    "environment": """\
done = subprocess.run([sys.executable, "-c", "import os; print(os.environ['MY_TOKEN'])"], capture_output=True)
print(done.stdout)
""",
    "argv": """\
words = [sys.executable, "-c", "import sys; print(sys.argv[2])", "--password", token]
done = subprocess.run(words, capture_output=True)
print(done.stdout)
""",
    "pipe": """\
reader, writer = os.pipe()
if os.fork() == 0:
    os.close(reader)
    send(lambda text: os.write(writer, text))
    os._exit(0)
os.close(writer)
take(lambda most: os.read(reader, most))
os.wait()
""",
    "socketpair": """\
ours, theirs = socket.socketpair()
if os.fork() == 0:
    ours.close()
    send(theirs.sendall)
    os._exit(0)
theirs.close()
take(ours.recv)
os.wait()
""",
    "unix": """\
listener = socket.socket(socket.AF_UNIX)
listener.bind(f"at-{token}")
listener.listen()
if os.fork() == 0:
    mine = socket.socket(socket.AF_UNIX)
    mine.connect(f"at-{token}")
    send(mine.send)
    os._exit(0)
theirs, _ = listener.accept()
take(lambda most: (buffer := bytearray(most), theirs.recv_into(buffer)) and bytes(buffer).rstrip(b"\\0"))
os.wait()
""",
    "tcp": """\
listener = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:
    mine = socket.create_connection(listener.getsockname())
    send(lambda text: mine.sendmsg([text[:3], text[3:]]))
    os._exit(0)
theirs, _ = listener.accept()
take(theirs.recv)
os.wait()
""",
    "datagrams": """\
ours = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ours.bind(("127.0.0.1", 0))
if os.fork() == 0:
    mine = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    send(lambda text: mine.sendto(text, ours.getsockname()))
    os._exit(0)
for text in texts:
    print(ours.recvfrom(500)[0])
os.wait()
""",
    "queue": """\
import multiprocessing
context = multiprocessing.get_context("fork")
queue = context.Queue()
child = context.Process(target=lambda: [queue.put(text) for text in [token, *texts]])
child.start()
print([queue.get() for text in [token, *texts]])
child.join()
""",
    "pool": """\
import concurrent.futures
with concurrent.futures.ProcessPoolExecutor(2) as pool:
    print(list(pool.map(base64.b64encode, [texts[0], texts[2]])))
""",
    "memory": """\
import mmap
shared = mmap.mmap(-1, 4096)
reader, writer = os.pipe()
if os.fork() == 0:
    shared[: len(texts[2])] = texts[2]
    os.write(writer, b"x")
    os._exit(0)
os.read(reader, 1)
print(shared[: len(texts[2])])
os.wait()
""",
    "file": """\
if os.fork() == 0:
    with open("kept", "wb") as file:
        send(file.write)
    os._exit(0)
os.wait()
with open("kept", "rb") as file:
    take(file.read)
""",
    "fork": """\
if os.fork() == 0:
    print(token, basic)
    sys.stdout.flush()
    os._exit(0)
os.wait()
print(texts)
""",
    "exec": """\
if os.fork() == 0:
    os.execv(sys.executable, [sys.executable, "-c", "import os; print(os.environ['MY_TOKEN'])"])
os.wait()
""",
    "killed": """\
import signal
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    send(lambda text: os.write(writer, text))
    signal.pause()
print(len(os.read(reader, 500)))
os.kill(child, signal.SIGKILL)
os.wait()
""",
    "file of a parent": """\
password = json.load(open("conf"))["password"]
ours, theirs = socket.socketpair()
if os.fork() == 0:
    theirs.sendall(base64.b64encode(b"user:" + password.encode()))
    os._exit(0)
print(ours.recv(100))
os.wait()
""",
}

UNSEALED = """\
reader, writer = os.pipe()
if os.fork() == 0:
    while True:
        os.write(writer, os.read(reader, 500)[:500])
        open("ready", "w").close()
os.write(writer, texts[1] + texts[2])
os.wait()
"""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    made = Person(tmp_path / "one")
    (made.place / "conf").write_text(f'{{"user": "me", "password": "{TOKEN[::-1]}"}}')
    return made


def recorded_by(person: Person, source: str, *options: str) -> Path:
    """Record a program with all of its processes; return the directory of the group."""
    (person.place / "prog.py").write_text(BEGIN + SENDS + source)
    done = person.do("record", "-q", *options, "-o", "r", "prog.py", MY_TOKEN=TOKEN)
    assert done.status == 0, done
    completed(person.place / "r.rdbgs")
    return person.place / "r.rdbgs"


def pairs(directory: Path) -> list[list[Segment]]:
    """Return which receive took which bytes of which send, channel by channel."""
    matching = OpenedGroup(directory).matching
    found = [matching.match(each) for each in matching.channels]
    assert [each.contradiction for each in found] == [None] * len(found)
    return [[each.segments[at] for at in range(len(each.segments))] for each in found]


def stored_bytes(directory: Path) -> Iterator[tuple[str, bytes]]:
    """Yield all that is in the files of a group, also what its recordings have in common."""
    for path in directory.rglob("*"):
        if path.is_file():
            yield path.name, path.read_bytes()
    for path in directory.glob("*.rdbg"):
        sealed = SealedFile(path)
        for name in sealed.names():
            yield f"{path.name}: {name}", b"".join(sealed.pieces(name))


def assert_no_secret(directory: Path, *secrets: str) -> None:
    forms = [form for secret in secrets for form in encodings(secret)]
    assert [name for name, data in stored_bytes(directory) if any(form in data for form in forms)] == []


def replays(person: Person, directory: Path) -> list[tuple[int, str | None, int, bool, int | None]]:
    """Replay all processes of a group; return the result of each."""
    done = person.do("replay", "--json", directory)
    return [
        (each["process"], each["error"], replay["events"], replay["is_whole"], replay["status"])
        for each in json.loads(done.stdout)["processes"]
        for replay in [each["replay"]]
    ]


def assert_sound(person: Person, copy: Path, original: Path) -> None:
    """Assert that a copy has what the original has, as far as its events go."""
    assert person.do("verify", copy).status == 0
    assert replays(person, copy) == replays(person, original)
    assert pairs(copy) == pairs(original)


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_group_is_copied_without_its_secrets(kind: str, person: Person) -> None:
    original = recorded_by(person, PROGRAMS[kind])

    done = person.do("redact", original, "-o", "copy")

    assert (done.status, done.stdout) == (0, "copy.rdbgs\n"), done
    assert f" in {len(list(original.glob('*.rdbg')))} processes agrees with the copy" in done.stderr
    assert_no_secret(person.place / "copy.rdbgs", TOKEN, TOKEN[::-1])
    assert_sound(person, person.place / "copy.rdbgs", original)
    assert not list(person.place.glob(".replaydbg-*"))


def test_the_copy_of_a_group_has_its_cuts(person: Person) -> None:
    original = recorded_by(person, PROGRAMS["socketpair"])
    assert person.do("redact", original, "-o", "copy").status == 0
    copy = person.place / "copy.rdbgs"

    for words in (("cuts",), ("channels",), ("resume", "--plan")):
        made, expected = (person.do(*words, each) for each in (copy, original))
        assert made.status == expected.status
        assert made.stdout.replace(str(copy), str(original)) == expected.stdout


COMPUTED = """\
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, b"pass" + b"word=" + token[::-1].encode())
    os._exit(0)
print(len(os.read(reader, 500)))
os.wait()
"""
DEPENDS = """\
import zlib
if os.fork() == 0:
    number = zlib.crc32(token.encode())
    os.stat(f"file-{number}") if os.path.exists(f"file-{number}") else os._exit(0)
os.wait()
"""


@pytest.mark.parametrize(
    ("source", "process", "where"),
    [
        (DEPENDS, "r/2", ('prog.py", line 17, in <module>', "depends on the value of a secret")),
        (COMPUTED, "r/2", ('prog.py", line 16)', "what it writes depends on the value of a secret")),
    ],
    ids=["depends", "computed"],
)
def test_a_process_that_depends_on_a_secret_refuses_its_group(
    source: str, process: str, where: tuple[str, str], person: Person
) -> None:
    original = recorded_by(person, source)

    done = person.do("redact", original, "-o", "copy")

    assert (done.status, done.stdout) == (2, ""), done
    assert f"Cannot redact '{process}': " in done.stderr
    assert all(each in done.stderr for each in where), done
    assert not (person.place / "copy.rdbgs").exists()
    assert not list(person.place.glob(".replaydbg-*"))


def test_what_is_computed_may_be_output_but_nothing_that_another_process_receives(person: Person) -> None:
    original = recorded_by(person, COMPUTED)

    done = person.do("redact", "--derived", original, "-o", "copy")

    assert (done.status, done.stdout) == (2, ""), done
    assert "that another process receives in another form" in done.stderr


def test_a_process_of_a_group_is_not_copied_alone(person: Person) -> None:
    recorded_by(person, PROGRAMS["fork"])

    done = person.do("redact", "r/2", "-o", "copy.rdbg")

    assert done.status == 2
    assert (
        "Cannot redact 'r/2': it is one process of a group: give the group (r), which is copied as a whole."
        in done.stderr
    )
    assert not (person.place / "copy.rdbg").exists()


def test_a_process_that_was_packed_alone_is_copied(person: Person) -> None:
    recorded_by(person, PROGRAMS["socketpair"])
    assert person.do("pack", "r/2", "-o", "alone.rdbg").status == 0

    done = person.do("redact", "alone.rdbg", "-o", "copy.rdbg")

    assert done.status == 0, done
    assert person.do("verify", "copy.rdbg").status == 0
    assert person.do("replay", "-q", "copy.rdbg").status == 0


def test_a_group_replaces_nothing(person: Person) -> None:
    original = recorded_by(person, PROGRAMS["fork"])
    (person.place / "copy.rdbgs").mkdir()

    done = person.do("redact", original, "-o", "copy")

    assert done.status == 2 and "'copy.rdbgs' exists already" in done.stderr
    assert not list((person.place / "copy.rdbgs").iterdir())


def test_a_durable_group_is_copied(person: Person) -> None:
    original = recorded_by(person, PROGRAMS["pipe"], "--durable")

    done = person.do("redact", original, "-o", "copy")

    assert done.status == 0, done
    assert_no_secret(person.place / "copy.rdbgs", TOKEN)
    assert_sound(person, person.place / "copy.rdbgs", original)


def test_a_group_that_was_never_sealed_is_copied(person: Person) -> None:
    (person.place / "prog.py").write_text(BEGIN + SENDS + UNSEALED)
    recorder = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "r", "prog.py"]
    with subprocess.Popen(
        recorder, cwd=person.place, env={**person.env, "MY_TOKEN": TOKEN}, start_new_session=True
    ) as run:
        wait_until(lambda: (person.place / "ready").exists())
        os.killpg(run.pid, signal.SIGKILL)
    assert list((person.place / "r.rdbgs").glob("*-live"))

    done = person.do("redact", "r", "-o", "copy")

    assert done.status == 0, done
    assert_no_secret(person.place / "copy.rdbgs", TOKEN)
    assert person.do("verify", "copy.rdbgs").status == person.do("verify", "r.rdbgs").status
    assert pairs(person.place / "copy.rdbgs") == pairs(person.place / "r.rdbgs")
    assert person.do("replay", "-q", "copy.rdbgs").status == person.do("replay", "-q", "r.rdbgs").status
