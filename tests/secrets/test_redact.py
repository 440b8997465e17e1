"""A redacted copy has pseudonyms in the place of secrets, and replays for everybody; or the line is named."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.log.sealed.sections import SealedFile
from replaydbg.secrets.forms import form_list
from replaydbg.secrets.pseudonyms import Pseudonyms, pseudonym, pseudonyms_of
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "reason"),
    [(("--durable", "--children=none"), "recorded with --durable"), (("--children=fork",), "its group")],
)
def test_what_cannot_be_redacted(options: tuple[str, ...], reason: str, people: tuple[Person, Person]) -> None:
    one, _ = people
    (one.place / "prog.py").write_text("import os\nif not os.fork(): os._exit(0)\nos.wait()\n")
    assert one.do("record", "-q", *options, "prog.py", MY_TOKEN=TOKEN).status == 0
    name = "run-1/1" if options == ("--children=fork",) else "run-1"

    refused = one.do("redact", name, "-o", "copy.rdbg")

    assert refused.status == 2 and reason in refused.stderr, refused


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
