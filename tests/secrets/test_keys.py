"""Secrets are for those who have a key; others can open, list and verify, and learn whose key is needed."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

import pytest

from replaydbg.log.sealed.sections import SealedFile
from replaydbg.secrets.age_keys import (
    decrypt_file,
    decrypted,
    encrypt_file,
    encrypted,
    identity_file,
    own_identity,
    recipient_of,
)
from tests.harness import tool
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow

TOKEN = "hunter2hunter2"


class Person:
    """A user with a key and settings of their own."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self.place = place
        self.env = {
            **passed_on(),
            "PATH": os.environ["PATH"],
            "XDG_DATA_HOME": str(place / "data"),
            "REPLAYDBG_STORE": str(place / "store"),
        }

    def do(self, *words: str | Path, stdin: str = "", **env: str) -> Outcome:
        command = [sys.executable, "-m", "replaydbg", *map(str, words)]
        return run(command, cwd=self.place, env=self.env | env, stdin=stdin.encode())

    def record(self, source: str, *options: str, **env: str) -> Path:
        (self.place / "prog.py").write_text(source)
        made = self.place / "r.rdbg"
        done = run(tool.record(sys.executable, made, ["prog.py"], options=options), cwd=self.place, env=self.env | env)
        assert done.status == 0, done
        return made

    def key(self) -> str:
        return self.do("key").stdout.strip()


@pytest.fixture
def people(tmp_path: Path) -> tuple[Person, Person]:
    return Person(tmp_path / "one"), Person(tmp_path / "two")


READS = "import os, sys\nprint(len(sys.argv), flush=True)\nprint(open('conf').read())\nprint('end')\n"


def test_a_replay_ends_before_the_first_secret_of_somebody_else(people: tuple[Person, Person]) -> None:
    one, two = people
    (one.place / "conf").write_text(f'password = "{TOKEN}"\n')
    made = one.record(READS)

    assert one.do("replay", "-q", made).stdout == f'1\npassword = "{TOKEN}"\n\nend\n'
    replayed = two.do("replay", made)
    assert (replayed.status, replayed.stdout) == (6, "1\n")
    assert f"a secret follows, which is encrypted for {one.key()}: you have no key for it" in replayed.stderr
    assert two.do("verify", made).status == 0
    events = two.do("events", made).stdout
    assert "*" * len(TOKEN) in events and TOKEN not in events
    assert "you have no key" in two.do("info", made).stdout
    assert "you have a key for them" in one.do("info", made).stdout


def test_a_secret_in_the_environment_is_needed_at_once(people: tuple[Person, Person]) -> None:
    one, two = people
    made = one.record("import os\nprint(os.environ['MY_TOKEN'])\n", MY_TOKEN=TOKEN)

    assert one.do("replay", "-q", made).stdout == f"{TOKEN}\n"
    replayed = two.do("replay", made)
    assert (replayed.status, replayed.stdout) == (1, "")
    assert "secrets in its environment or code are masked" in replayed.stderr
    assert "the program in it now runs" not in replayed.stderr
    assert one.key() in replayed.stderr


def test_recipients_have_a_key(people: tuple[Person, Person]) -> None:
    one, two = people
    made = one.record("import os\nprint(os.environ['MY_TOKEN'])\n", MY_TOKEN=TOKEN, REPLAYDBG_RECIPIENTS=two.key())

    for person in people:
        assert person.do("replay", "-q", made).stdout == f"{TOKEN}\n"


def test_secrets_are_kept_if_asked(people: tuple[Person, Person]) -> None:
    one, two = people
    made = one.record("import os\nprint(os.environ['MY_TOKEN'])\n", "--secrets=keep", MY_TOKEN=TOKEN)

    assert SealedFile(made).masked is None
    assert two.do("replay", "-q", made).stdout == f"{TOKEN}\n"


def test_names_of_ones_own(people: tuple[Person, Person]) -> None:
    one, _ = people
    made = one.record("print(1)\n", DOOR_CODE=TOKEN, REPLAYDBG_SECRET_NAMES="DOOR_*, OTHER")

    masked = SealedFile(made).masked
    assert masked is not None and list(masked.places) == ["header"]


def test_what_says_what_is_a_secret_is_none(people: tuple[Person, Person]) -> None:
    one, _ = people
    made = one.record("print(1)\n", REPLAYDBG_SECRET_PATTERNS="Badge: ([0-9]{8})", REPLAYDBG_SECRET_NAMES="DOOR_*")

    assert SealedFile(made).masked is None


def test_patterns_of_ones_own(people: tuple[Person, Person]) -> None:
    one, two = people
    (one.place / "conf").write_text("Badge: 20250101, known to all: 20250102, ACME-77\n")
    (one.place / "pyproject.toml").write_text(
        "[tool.replaydbg]\nsecret_patterns = ['Badge: ([0-9]{8})', '(?i)acme-[0-9]+']\n"
    )
    made = one.record("import os\nprint(open('conf').read() + os.environ['WHO'])\n", WHO="acme-12345")

    sealed = SealedFile(made)
    assert sealed.masked is not None and set(sealed.masked.places) == {"header", "log"}
    log = b"".join(sealed.stored_pieces("log"))
    assert b"Badge: ********, known to all: 20250102, *******" in log
    assert two.do("info", "--env", made).stdout.count("WHO=**********") == 1
    assert one.do("replay", "-q", made).stdout.endswith("ACME-77\nacme-12345\n")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("key=(", "'key=(' is not a regular expression: missing ), unterminated subpattern"),
        ("(secret)?", "'(secret)?' matches the empty string"),
        (r"\b", r"'\\b' matches the empty string"),
        (1, "it must be a list of regular expressions"),
    ],
)
def test_what_is_no_pattern(pattern: object, problem: str, people: tuple[Person, Person]) -> None:
    one, _ = people
    (one.place / "pyproject.toml").write_text(f"[tool.replaydbg]\nsecret_patterns = {json.dumps([pattern])}\n")

    done = one.do("ls")

    assert done.status == 2
    assert problem in done.stderr and "pyproject.toml" in done.stderr


def test_a_project_cannot_turn_it_off(people: tuple[Person, Person]) -> None:
    one, two = people
    for setting in ('secrets = "keep"', f'recipients = ["{two.key()}"]'):
        (one.place / "pyproject.toml").write_text(f"[tool.replaydbg]\n{setting}\n")
        assert f"sets {setting.split()[0]!r}; only" in one.do("ls").stderr


@pytest.mark.parametrize("is_group", [False, True])
def test_a_packed_recording_is_encrypted(people: tuple[Person, Person], is_group: bool) -> None:
    one, two = people
    source = "import os\nif not os.fork(): os._exit(0)\nos.wait()\nprint(1)\n" if is_group else "print(1)\n"
    (one.place / "prog.py").write_text(source)
    assert one.do("record", "-q", "--children=fork", "prog.py").status == 0
    packed, own = one.place / "packed.age", one.key()

    assert one.do("pack", "latest", "-o", packed, "--to", two.key()).stdout == f"{packed}\n"
    assert [path.name for path in one.place.glob(".replaydbg-*")] == []
    assert b"prog.py" not in packed.read_bytes()
    for command in ("info", "replay", "verify"):
        assert "it is encrypted with age; use `replaydbg unpack` first" in one.do(command, packed).stderr
    refused = one.do("unpack", packed)
    assert (refused.status, refused.stdout) == (2, "")
    assert f"is encrypted for other keys, or damaged (yours is {own})" in refused.stderr
    unpacked = two.do("unpack", packed, "-o", "mine")
    assert unpacked.status == 0, unpacked
    assert two.do("replay", "-q", unpacked.stdout.strip()).stdout == "1\n"
    assert two.do("unpack", packed, "-o", "mine").status == 2


@pytest.mark.parametrize("key", ["age1", "me", ""])
def test_what_is_no_key(people: tuple[Person, Person], key: str) -> None:
    one, _ = people
    one.record("print(1)\n")
    refused = one.do("pack", "r", "-o", "packed", "--to", key)

    assert refused.status == 2 and "--to needs a public key of age" in refused.stderr
    assert not (one.place / "packed").exists()


def test_a_key_that_others_may_read_is_none(people: tuple[Person, Person]) -> None:
    one, _ = people
    one.key()
    (file,) = (one.place / "data").rglob("identity.age")
    file.chmod(0o644)

    assert "others may read it" in one.do("key").stderr


def test_damage_is_not_a_key_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    identity = own_identity(make=True)
    assert identity is not None
    data = encrypted(b"data", [recipient_of(identity)])

    assert decrypted(data, [identity]) == b"data"
    assert decrypted(data[:-1] + bytes([data[-1] ^ 1]), [identity]) is None
    assert decrypted(b"", [identity]) is None


WAITS = """import os, signal, sys
import replaydbg
token = os.environ["MY_TOKEN"]
print(open("conf").read(), flush=True)
replaydbg.snapshot("here")
open("ready", "w").close()
os.kill(os.getppid(), signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("children", ["none"])  # of a group, another process seals what is left
def test_what_was_never_sealed_is_masked_when_it_is_packed(people: tuple[Person, Person], children: str) -> None:
    one, two = people
    (one.place / "conf").write_text(f'password = "{TOKEN}1"\n')
    (one.place / "prog.py").write_text(WAITS)
    one.do("record", "-q", f"--children={children}", "prog.py", MY_TOKEN=TOKEN)
    live = next((one.place / "store").rglob("*.rdbg-live"))
    assert any(TOKEN.encode() in each.read_bytes() for each in live.rglob("*") if each.is_file())

    sealed = one.place / "packed.rdbg"
    assert one.do("pack", "latest", "-o", sealed).status == 0
    verified = one.do("verify", sealed)
    assert verified.status == 0 and "How the program ended is not recorded" in verified.stderr, verified
    if children != "none":
        assert one.do("unpack", sealed, "-o", "mine").status == 0
        (sealed,) = one.place.glob("mine*/1.rdbg")
    data = SealedFile(sealed)
    for name in data.names():
        assert TOKEN.encode() not in b"".join(data.stored_pieces(name)), name
    assert one.do("replay", "-q", sealed).stdout == f'password = "{TOKEN}1"\n\n'
    assert TOKEN not in two.do("replay", "-q", sealed).stdout


@pytest.mark.parametrize("state", ["readable by others", "no key", "a directory"])
def test_without_a_usable_key_secrets_are_masked_for_good(state: str, people: tuple[Person, Person]) -> None:
    one, _ = people
    one.key()
    (file,) = (one.place / "data").rglob("identity.age")
    if state == "readable by others":
        file.chmod(0o644)
    elif state == "no key":
        file.write_text(state)
    else:
        file.unlink()
        file.mkdir(mode=0o700)

    made = one.record("import os\nprint(len(os.environ['MY_TOKEN']))\n", MY_TOKEN=TOKEN)

    sealed = SealedFile(made)
    assert TOKEN.encode() not in b"".join(b"".join(sealed.stored_pieces(name)) for name in sealed.names())
    shown = one.do("info", made).stdout
    assert "so its secrets are masked for good" in shown
    assert "no key could be used when it was sealed, so nobody can see them" in shown and "you have a key" not in shown
    assert one.do("verify", made).status == 0
    for words in (("replay", "-q", made), ("redact", made, "-o", one.place / "copy.rdbg")):
        refused = one.do(*words)
        assert refused.status == 1
        assert "its secrets are masked for good, because no key could be used when it was sealed" in refused.stderr
    assert not (one.place / "copy.rdbg").exists()


def test_a_replay_ends_before_a_secret_that_is_masked_for_good(people: tuple[Person, Person]) -> None:
    one, _ = people
    (one.place / "conf").write_text(f'password = "{TOKEN}"\n')
    one.key()
    (file,) = (one.place / "data").rglob("identity.age")
    file.write_text("no key")
    made = one.record(READS)

    replayed = one.do("replay", made)

    assert (replayed.status, replayed.stdout) == (6, "1\n")
    assert "a secret follows, which is masked for good: no key could be used" in replayed.stderr


def test_a_key_can_be_replaced(people: tuple[Person, Person]) -> None:
    one, two = people
    source = "import os\nprint(os.environ['MY_TOKEN'])\n"
    old, earlier = one.key(), one.record(source, MY_TOKEN=TOKEN)
    packed = one.place / "packed.age"
    assert one.do("pack", earlier, "-o", packed, "--to", old).status == 0
    two.key()
    mine, other = (next((each.place / "data").rglob("identity.age")) for each in people)
    mine.write_text(f"# new\n{other.read_text()}\n{mine.read_text()}")

    assert one.key() == two.key() != old
    assert one.do("replay", "-q", earlier).stdout == f"{TOKEN}\n"
    assert one.do("unpack", packed, "-o", "mine").status == 0
    earlier.unlink()
    assert two.do("replay", "-q", one.record(source, MY_TOKEN=TOKEN)).stdout == f"{TOKEN}\n"


@pytest.mark.parametrize("damage", ["changed", "cut off"])
def test_an_encrypted_file_that_was_damaged(people: tuple[Person, Person], damage: str) -> None:
    one, _ = people
    made, packed = one.record("print(1)\n"), one.place / "packed.age"
    assert one.do("pack", made, "-o", packed, "--to", one.key()).status == 0
    data = packed.read_bytes()
    packed.write_bytes(data[:-5] if damage == "cut off" else data[:-5] + b"12345")

    refused = one.do("unpack", packed, "-o", "mine")

    assert (refused.status, refused.stdout) == (1, "")
    reason = "what is encrypted in it was changed or cut off"
    assert refused.stderr == f"replaydbg: {str(packed)!r} is damaged: {reason}.\n"


def test_a_key_that_cannot_be_stored_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(os, "fsync", fails)

    with pytest.raises(OSError, match="No space left") as caught:
        own_identity(make=True)
    assert caught.value.filename == str(identity_file())
    assert list(identity_file().parent.iterdir()) == []


@pytest.mark.parametrize("size", [4, 1 << 20])
@pytest.mark.parametrize("encrypts", [True, False])
def test_a_full_disk_is_named(encrypts: bool, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    identity = own_identity(make=True)
    assert identity is not None
    source, full = tmp_path / "source", Path("/dev/full")
    source.write_bytes(encrypted(bytes(size), [recipient_of(identity)]))

    with pytest.raises(OSError, match="No space left") as caught:
        if encrypts:
            encrypt_file(source, full, [recipient_of(identity)])
        else:
            decrypt_file(source, full, [identity])
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(full))


def test_a_home_that_cannot_be_written_is_no_reason_to_leave_secrets(people: tuple[Person, Person]) -> None:
    one, two = people
    nowhere = "/proc/none"

    made = one.record("print(1)\n", MY_TOKEN=TOKEN, XDG_DATA_HOME=nowhere, REPLAYDBG_RECIPIENTS=two.key())

    assert two.do("replay", "-q", made).stdout == "1\n"


def test_what_is_no_recipient(people: tuple[Person, Person]) -> None:
    one, _ = people
    (one.place / "prog.py").write_text("print(1)\n")
    refused = one.do("record", "prog.py", MY_TOKEN=TOKEN, REPLAYDBG_RECIPIENTS="foo")

    assert (refused.status, refused.stdout) == (2, "")
    assert "The setting 'recipients' has something else than public keys of age" in refused.stderr
    assert not list(one.place.rglob("*.rdbg*"))
