"""A redacted copy has pseudonyms in the place of secrets, and replays for everybody; or the line is named."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import struct
import subprocess
import sys
from base64 import b64encode
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.heap.storage.recorded_snapshots import load_series
from replaydbg.log.entries.checksums import whole_stretches
from replaydbg.log.files import DataFile
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.sections import SealedFile
from replaydbg.redaction.told_output import derived_output
from replaydbg.secrets.forms import form_list
from replaydbg.secrets.pseudonyms import Pseudonyms, pseudonym, pseudonyms_of
from tests.harness.replays import Outcome
from tests.harness.tool import ENDS_EARLY
from tests.secrets.test_corpus import KINDS, encodings, plant
from tests.secrets.test_keys import Person

TOKEN = "hunter2hunter2"
SENT = """import base64, json, os
token = os.environ["MY_TOKEN"]
password = json.load(open("conf"))["password"]
print(base64.b64encode(f"user:{password}".encode()).decode())
with open("out", "w") as out:
    out.write(token + password * 3)
"""
# A checksum: the sum of a pseudonym's letters is at times that of the secret.
DEPENDS = """import os, zlib
number = zlib.crc32(os.environ["MY_TOKEN"].encode())
os.stat(f"file-{number}") if os.path.exists(f"file-{number}") else print(number)
"""
SNAPSHOT = """import os, replaydbg
kept = "prefix " + os.environ["MY_TOKEN"]
replaydbg.snapshot("here")
"""


@pytest.fixture
def people(tmp_path: Path) -> tuple[Person, Person]:
    return Person(tmp_path / "one"), Person(tmp_path / "two")


@pytest.mark.slow
def test_a_copy_replays_for_everybody(people: tuple[Person, Person]) -> None:
    one, two = people
    (one.place / "conf").write_text(json.dumps({"user": "me", "password": "Sup3rS3cretPass"}))
    made = one.record(SENT, MY_TOKEN=TOKEN)

    done = one.do("redact", made, "-o", "copy.rdbg")

    assert (done.status, done.stdout) == (0, "copy.rdbg\n"), done
    assert "2 secrets replaced; a replay of " in done.stderr
    copy = one.place / "copy.rdbg"
    sealed = SealedFile(copy)
    assert sealed.masked is None
    stored = b"".join(b"".join(sealed.stored_pieces(name)) for name in sealed.names())
    for secret in (TOKEN, "Sup3rS3cretPass"):
        assert not [form for form in encodings(secret) if form in stored]
    for person in people:
        replayed = person.do("replay", "-q", copy)
        assert replayed.status == 0 and replayed.stdout != one.do("replay", "-q", made).stdout, replayed
        assert len(replayed.stdout) == len(one.do("replay", "-q", made).stdout)
    assert two.do("verify", copy).status == 0
    assert one.do("redact", made, "-o", "copy.rdbg").status == 2
    assert not list(one.place.glob(".replaydbg-*"))


@pytest.mark.slow
def test_what_depends_on_a_secret_is_refused_with_its_line(people: tuple[Person, Person]) -> None:
    one, two = people
    made = one.record(DEPENDS, MY_TOKEN=TOKEN)

    refused = one.do("redact", made, "-o", "copy.rdbg")

    assert refused.status == 2
    assert "Cannot redact 'r': its run depends on the value of a secret: at event " in refused.stderr
    assert 'prog.py", line 3' in refused.stderr
    assert not (one.place / "copy.rdbg").exists()
    assert "you have no key" in two.do("redact", made, "-o", two.place / "copy.rdbg").stderr


PRINTS = """import os
token = os.environ["MY_TOKEN"]
print("access granted" if sum(token.encode()) == 1424 else "access denied!", flush=True)
"""
SIGNS = """import os, zlib
token = os.environ["MY_TOKEN"]
with open("out", "w") as out:
    out.write(f"{token} {zlib.crc32(token.encode()):010d}")
"""
ANSWERS = """import os
print(sum(os.environ["MY_TOKEN"].encode()) == 1424, flush=True)
"""


def copied(person: Person, program: str, *options: str) -> Outcome:
    # Pseudonyms are random: some have the same sum of letters as the token.
    made = person.place / "r.rdbg"
    if not made.exists():
        person.record(program, MY_TOKEN="hunter2hunter2")
    (person.place / "copy.rdbg").unlink(missing_ok=True)
    return person.do("redact", made, *options, "-o", "copy.rdbg")


@pytest.mark.slow
@pytest.mark.parametrize(("program", "line"), [(PRINTS, 3), (SIGNS, 3)], ids=["prints", "signs"])
def test_output_that_depends_on_a_secret_is_refused(program: str, line: int, people: tuple[Person, Person]) -> None:
    one, two = people
    for _ in range(3):
        done = copied(one, program)
        if done.status == 2:
            break

    assert (
        "Cannot redact 'r': what it writes depends on the value of a secret (--derived accepts that): " in done.stderr
    )
    assert f'prog.py", line {line})' in done.stderr
    assert not (one.place / "copy.rdbg").exists()
    assert not list(one.place.glob(".replaydbg-*"))

    done = copied(one, program, "--derived")
    assert done.status == 0, done
    assert two.do("replay", "-q", one.place / "copy.rdbg").status == 0


@pytest.mark.slow
def test_output_of_another_length_is_always_refused(people: tuple[Person, Person]) -> None:
    one, _ = people
    for _ in range(3):
        done = copied(one, ANSWERS, "--derived")
        if done.status == 2:
            break

    assert "depends on the value of a secret: at event " in done.stderr
    assert not (one.place / "copy.rdbg").exists()


@settings(deadline=None)
@given(st.lists(st.binary(max_size=30), max_size=6), st.data())
def test_the_first_difference_is_found(pieces: list[bytes], data: st.DataObject) -> None:
    secret, other = b"s3cret-word", b"p7krqz-vbfm"
    at = data.draw(st.integers(0, len(pieces)))
    pieces = [*pieces[:at], b"a " + secret[:5], secret[5:] + b" b", *pieces[at:]]

    def told(parts: list[bytes]) -> io.BytesIO:
        return io.BytesIO(
            b"".join(struct.pack("<QQQ", 0, number, len(each)) + each for number, each in enumerate(parts, 7))
        )

    pseudonyms = Pseudonyms({secret: other})
    whole = pseudonyms.replaced(b"".join(pieces))
    ends = [0, *accumulate(map(len, pieces))]
    copy = [whole[begin:end] for begin, end in pairwise(ends)]
    assert list(derived_output(told(pieces), told(copy), pseudonyms)) == []

    where = data.draw(st.integers(0, len(copy) - 1))
    if copy[where]:
        changed = bytes([copy[where][0] ^ 1]) + copy[where][1:]
        (found,) = derived_output(told(pieces), told([*copy[:where], changed, *copy[where + 1 :]]), pseudonyms)
        assert (found.event, found.is_longer_or_shorter) == (where + 7, False)
    (found,) = derived_output(told(pieces), told([*copy[:where], copy[where] + b"!", *copy[where + 1 :]]), pseudonyms)
    assert (found.event, found.is_longer_or_shorter) == (where + 7, True)
    (found,) = derived_output(told(pieces), told(copy[:-1]), pseudonyms)
    assert found.is_longer_or_shorter


@pytest.mark.slow
def test_a_durable_recording_has_checksums_of_the_copy(people: tuple[Person, Person]) -> None:
    one, two = people
    (one.place / "conf").write_text(json.dumps({"user": "me", "password": "Sup3rS3cretPass"}))
    made = one.record(SENT, "--durable", MY_TOKEN=TOKEN)

    done = one.do("redact", made, "-o", "copy.rdbg")

    assert done.status == 0, done
    copy = one.place / "copy.rdbg"
    assert two.do("verify", copy).status == 0
    assert two.do("replay", "-q", copy).status == 0
    for name in ("log", "world"):
        _assert_checksums_fit(copy, name, one.place)


def _assert_checksums_fit(path: Path, name: str, place: Path) -> None:
    with open_recording(path) as recording:
        (place / name).write_bytes(recording.section(name))
    with DataFile(place / name) as file:
        found = whole_stretches(file, world=None if name == "world" else 1 << 40, content=1 << 40)
        assert found.stretches > 0 and found.end == file.size, (name, found)


@pytest.mark.slow
def test_a_recording_that_was_never_sealed_is_sealed_in_the_copy(people: tuple[Person, Person]) -> None:
    one, two = people
    (one.place / "conf").write_text(json.dumps({"user": "me", "password": "Sup3rS3cretPass"}))
    (one.place / "prog.py").write_text(f"{SENT}\nimport sys\nsys.stdout.flush()\nsys.stdin.read()\n")
    words = [sys.executable, "-m", "replaydbg", "record", "-q", "--children=none", "-o", "r", "prog.py"]
    env = {**one.env, "MY_TOKEN": TOKEN}
    with subprocess.Popen(
        words, cwd=one.place, env=env, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as recorder:
        assert recorder.stdout is not None and recorder.stdout.readline()
        os.killpg(recorder.pid, signal.SIGKILL)
    assert (one.place / "r.rdbg-live").is_dir()

    done = one.do("redact", "r", "-o", "copy.rdbg")

    assert (done.status, done.stdout) == (0, "copy.rdbg\n"), done
    _assert_has_none(one.place / "copy.rdbg", TOKEN, "Sup3rS3cretPass")
    replayed = two.do("replay", "-q", one.place / "copy.rdbg")
    assert replayed.status == one.do("replay", "-q", "r").status == ENDS_EARLY
    assert (one.place / "r.rdbg-live").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--secrets=keep",)], ids=["masked", "kept"])
def test_snapshots_have_no_secret_in_the_copy(options: tuple[str, ...], people: tuple[Person, Person]) -> None:
    one, _ = people
    made = one.record(SNAPSHOT, *options, MY_TOKEN=TOKEN)

    assert one.do("redact", made, "-o", "copy.rdbg").status == 0

    with open_recording(one.place / "copy.rdbg") as copy:
        texts = [series.strings.raw(at) for series in load_series(copy, print) for at in range(len(series.strings))]
    assert [each for each in texts if TOKEN.encode() in each] == []
    assert bool(texts) == (options == ())
    _assert_has_none(one.place / "copy.rdbg", TOKEN)


def _assert_has_none(path: Path, *secrets: str) -> None:
    sealed = SealedFile(path)
    for name in sealed.names():
        stored = b"".join(sealed.stored_pieces(name))
        assert [form for secret in secrets for form in encodings(secret) if form in stored] == [], name


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_corpus_is_redacted_or_a_line_is_named(kind: str, tmp_path: Path) -> None:
    person = Person(tmp_path / "one")
    secrets, planted = plant(kind, person.place)
    done = person.do(
        "record", "--children=none", "-q", "-o", "r", "prog.py", *planted.words, stdin=planted.stdin, **planted.env
    )
    assert done.status == 0, done

    made = person.do("redact", "r", "-o", "copy.rdbg")

    if made.status == 2:
        assert 'prog.py", line ' in made.stderr or "site-packages" in made.stderr or '.py", line ' in made.stderr, made
        return
    assert made.status == 0, made
    sealed = SealedFile(person.place / "copy.rdbg")
    for name in sealed.names():
        stored = b"".join(sealed.stored_pieces(name))
        assert [form for secret in secrets for form in encodings(secret) if form in stored] == [], name


_SECRETS = st.one_of(
    st.text(min_size=6, max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(min_size=6, max_size=40),
    st.from_regex(rb"[A-Za-z0-9+/_%\\-]{6,40}", fullmatch=True),
)


@settings(deadline=None)
@given(_SECRETS, st.integers())
def test_a_pseudonym_has_the_same_forms(secret: bytes, seed: int) -> None:
    made = pseudonym(secret, random.Random(seed))

    forms, others = form_list(secret), form_list(made)
    assert len(secret) == len(made)
    assert [len(each) for each in forms] == [len(each) for each in others]


@settings(deadline=None)
@given(st.lists(_SECRETS, min_size=1, max_size=4, unique=True), st.binary(max_size=200), st.integers())
def test_what_is_replaced_keeps_its_length(secrets: list[bytes], around: bytes, seed: int) -> None:
    replaces = Pseudonyms(pseudonyms_of(secrets, random.Random(seed)))
    data = around + b"\x00".join(form for each in secrets for form in form_list(each)) + around

    assert len(replaces.replaced(data)) == len(data)


@settings(deadline=None)
@given(st.from_regex(rb"[a-z]{4}[0-9]{2}", fullmatch=True), st.integers())
def test_one_secret_in_another_has_the_same_pseudonym(secret: bytes, seed: int) -> None:
    made = pseudonyms_of([b"before-" + secret, secret], random.Random(seed))

    assert made[b"before-" + secret].endswith(made[secret])


@settings(deadline=None)
@given(st.from_regex(rb"[a-z]{6}[0-9]{2}", fullmatch=True), st.integers())
def test_one_secret_in_another_encoding_has_the_same_pseudonym(secret: bytes, seed: int) -> None:
    encoded = [b64encode(b"user:" + secret), (b"key-" + secret).hex().encode()]

    made = pseudonyms_of([*encoded, secret], random.Random(seed))

    assert [made[each] for each in encoded] == [
        b64encode(b"user:" + made[secret]),
        (b"key-" + made[secret]).hex().encode(),
    ]
    assert made[secret] != secret


@settings(deadline=None)
@given(
    st.from_regex(rb"[a-z]{6}[0-9]{2,4}", fullmatch=True), st.binary(max_size=9), st.binary(max_size=9), st.integers()
)
def test_a_secret_in_base64_is_decoded_to_its_pseudonym(secret: bytes, before: bytes, after: bytes, seed: int) -> None:
    made = pseudonyms_of([secret], random.Random(seed))

    replaced = Pseudonyms(made).replaced(b64encode(before + secret + after))

    assert replaced == b64encode(before + made[secret] + after)
