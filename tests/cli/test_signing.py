"""`replaydbg sign`, and what every command does with a recording that has a signature beside it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.build import write_group_of
from tests.harness.recording import record_file

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen (of OpenSSH) is not installed"),
]


class Place:
    """A directory with a recording, a key, and a home of its own."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.home = {**os.environ, "HOME": str(top / "home"), "XDG_CONFIG_HOME": str(top / "config")}
        self.home |= {"XDG_DATA_HOME": str(top / "data"), "XDG_CACHE_HOME": str(top / "cache")}
        (top / "home").mkdir(exist_ok=True)
        self.key = self.new_key("key")

    def new_key(self, name: str) -> Path:
        path = self.top / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", str(path)], check=True)
        return path

    def trust(self, line: str, key: Path | None = None) -> None:
        """Write the file of trusted signers; `{key}` in the line is the public key."""
        public = " ".join((key or self.key).with_suffix(".pub").read_text().split()[:2])
        folder = self.top / "config" / "replaydbg"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "allowed_signers").write_text(line.format(key=public) + "\n")

    def tool(self, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "replaydbg", *words]
        env = self.home | changes
        return subprocess.run(command, cwd=self.top, env=env, capture_output=True, text=True, check=False)

    def signature(self, name: str = "one.rdbg") -> Any:
        """Return what `info --json` reports."""
        return json.loads(self.tool("info", "--json", name).stdout)["signature"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    (tmp_path / "one.py").write_text("print('hello')\n")
    place.tool("record", "-q", "-o", "one.rdbg", "one.py")
    assert (tmp_path / "one.rdbg").is_file()
    return place


def test_a_signature_is_shown_with_its_signer(place: Place) -> None:
    before = place.signature()
    done = place.tool("sign", "one.rdbg", "--key", "key")
    unknown = place.signature()
    place.trust('signer@example.org namespaces="replaydbg" {key}')
    trusted = place.signature()

    assert before is None
    assert done.stdout == f"{place.top / 'one.rdbg.sig'}\n" or done.stdout == "one.rdbg.sig\n"
    assert 'NAME namespaces="replaydbg" ssh-ed25519 ' in done.stderr
    assert unknown["trusted"] is False and unknown["signer"] is None
    assert unknown["key"].startswith("ED25519 SHA256:")
    assert trusted == {"signer": "signer@example.org", "key": unknown["key"], "trusted": True}
    assert "signed:     by signer@example.org (ED25519 SHA256:" in place.tool("info", "one.rdbg").stdout
    assert "It is signed by signer@example.org (ED25519 SHA256:" in place.tool("verify", "one.rdbg").stdout


def test_openssh_verifies_it_without_replaydbg(place: Place) -> None:
    place.tool("sign", "one.rdbg", "--key", "key")
    place.trust("signer {key}")
    signers = place.top / "config" / "replaydbg" / "allowed_signers"

    command = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-f",
        str(signers),
        "-I",
        "signer",
        "-n",
        "replaydbg",
        "-s",
        "one.rdbg.sig",
    ]
    with (place.top / "one.rdbg").open("rb") as file:
        done = subprocess.run(command, cwd=place.top, stdin=file, capture_output=True, check=False)

    assert done.returncode == 0


@pytest.mark.parametrize("command", ["info", "replay", "events", "verify", "check", "pack", "why", "redact"])
def test_a_recording_that_was_changed_is_refused_before_anything_of_it_is_used(place: Place, command: str) -> None:
    place.tool("sign", "one.rdbg", "--key", "key")
    data = bytearray((place.top / "one.rdbg").read_bytes())
    data[len(data) // 2] ^= 1
    (place.top / "one.rdbg").write_bytes(data)
    more = {"pack": ("-o", "new.rdbg"), "redact": ("-o", "new.rdbg"), "why": ("x",)}.get(command, ())

    done = place.tool(command, "one.rdbg", *more)

    assert done.returncode not in (0, 125), done.stdout
    assert done.stdout == ""
    sentence = "The signature of 'one.rdbg' does not match: the recording, or the signature, is not as it was when it"
    assert done.stderr.replace(str(place.top) + "/", "").startswith(f"replaydbg: {sentence} was signed.")
    assert done.stderr.count("\n") == 1
    assert not (place.top / "new.rdbg").exists()


def test_a_signature_of_another_recording_or_purpose_is_refused(place: Place) -> None:
    (place.top / "two.py").write_text("print('bye')\n")
    place.tool("record", "-q", "-o", "two.rdbg", "two.py")
    place.tool("sign", "two.rdbg", "--key", "key")
    shutil.copy(place.top / "two.rdbg.sig", place.top / "one.rdbg.sig")
    swapped = place.tool("info", "one.rdbg")
    with (place.top / "one.rdbg").open("rb") as file:
        command = ["ssh-keygen", "-Y", "sign", "-n", "git", "-f", str(place.key)]
        other = subprocess.run(command, stdin=file, capture_output=True, check=True)
    (place.top / "one.rdbg.sig").write_bytes(other.stdout)
    purpose = place.tool("info", "one.rdbg")

    for done in (swapped, purpose):
        assert done.returncode == 1 and "does not match" in done.stderr


@pytest.mark.parametrize("kind", ["text", "empty", "long", "directory", "fifo", "link"])
def test_what_is_no_signature_is_refused(place: Place, kind: str) -> None:
    path = place.top / "one.rdbg.sig"
    if kind in ("text", "empty", "long"):
        path.write_bytes({"text": b"nothing", "empty": b"", "long": b"x" * 70_000}[kind])
    elif kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/etc/passwd")

    done = place.tool("info", "one.rdbg")

    assert done.returncode == 1
    assert done.stderr.startswith("replaydbg: The signature of 'one.rdbg' ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "line",
    [
        'signer namespaces="git" {key}',
        'signer valid-before="20200101" {key}',
        "# signer {key}",
        "signer",
        "signer,other ssh-ed25519 AAAA",
    ],
)
def test_a_key_that_is_not_trusted_for_this_is_that_of_an_unknown_signer(place: Place, line: str) -> None:
    place.tool("sign", "one.rdbg", "--key", "key")
    place.trust(line)

    assert place.signature()["trusted"] is False


def test_one_of_several_names_of_a_signer(place: Place) -> None:
    place.tool("sign", "one.rdbg", "--key", "key")
    place.trust("signer@example.org,a@example.org {key}")

    assert place.signature()["signer"] == "signer@example.org"


def test_without_ssh_keygen_nothing_is_used(place: Place) -> None:
    place.tool("sign", "one.rdbg", "--key", "key")

    done = place.tool("info", "one.rdbg", PATH="/nowhere")

    assert done.returncode == 1
    assert "cannot be verified: ssh-keygen (of OpenSSH) is not installed, or not on PATH" in done.stderr


def test_a_store_lists_it_and_removes_it_by_no_rule(place: Place) -> None:
    for _ in range(2):
        place.tool("record", "-q", "one.py")
    place.tool("sign", "run-1", "--key", "key")

    unverified = place.tool("ls", PATH="/nowhere")
    kept = place.tool("gc", "--recordings", "--keep", "last", PATH="/nowhere")
    listed = place.tool("ls")
    removed = place.tool("gc", "--recordings", "--keep", "last")

    assert "cannot be verified: ssh-keygen" in unverified.stdout
    assert [line.split("\t")[0] for line in listed.stdout.splitlines()] == ["run-1", "run-2"]
    assert kept.returncode == removed.returncode == 0, kept.stderr + removed.stderr
    assert "cannot be verified" not in listed.stdout
    store = place.top / "data" / "replaydbg" / "recordings"
    assert sorted(path.name for path in store.glob("run-*")) == ["run-2.rdbg"]


def test_the_warning_about_a_foreign_recording_names_the_signer(place: Place) -> None:
    place.tool("sign", "one.rdbg", "--key", "key")
    shutil.rmtree(place.top / "data")  # with the key of the mark

    unknown = place.tool("replay", "one.rdbg")
    place.trust("signer {key}")
    trusted = place.tool("replay", "one.rdbg")

    assert unknown.stdout == trusted.stdout == "hello\n"
    assert "was not recorded by you" in unknown.stderr and ", and is signed by an unknown signer (" in unknown.stderr
    assert ", but is signed by signer (ED25519 " in trusted.stderr


def test_a_signature_goes_with_its_recording(place: Place) -> None:
    place.tool("sign", "one.rdbg", "--key", "key")
    packed = place.tool("pack", "one.rdbg", "-o", "two.rdbg")
    (place.top / "two.rdbg.sig").write_text("of an earlier file")
    place.tool("rm", "two.rdbg")
    gone = not (place.top / "two.rdbg.sig").exists()
    place.tool("rm", "one.rdbg")

    assert "'two.rdbg' is not signed: its bytes are not those that were signed." in packed.stderr
    assert gone
    assert not (place.top / "one.rdbg.sig").exists()


def test_a_new_recording_does_not_inherit_the_signature_of_an_earlier_one(place: Place) -> None:
    place.tool("sign", "one.rdbg", "--key", "key")
    (place.top / "one.rdbg").unlink()

    place.tool("record", "-q", "-o", "one.rdbg", "one.py")

    assert place.signature() is None


def test_signing_again_needs_force(place: Place) -> None:
    place.new_key("other")
    place.tool("sign", "one.rdbg", "--key", "key")

    again = place.tool("sign", "one.rdbg", "--key", "other")
    forced = place.tool("sign", "one.rdbg", "--key", "other", "--force", "--json")

    assert again.returncode == 2 and "exists already. --force replaces it." in again.stderr
    assert forced.returncode == 0
    assert json.loads(forced.stdout)["key"] == place.signature()["key"]


def test_what_cannot_be_signed(place: Place) -> None:
    data = (place.top / "one.rdbg").read_bytes()
    (place.top / "cut.rdbg").write_bytes(data[: len(data) // 2])
    (place.top / "text").write_text("no key")

    no_key = place.tool("sign", "one.rdbg")
    missing = place.tool("sign", "one.rdbg", "--key", "nowhere")
    wrong = place.tool("sign", "one.rdbg", "--key", "text")
    damaged = place.tool("sign", "cut.rdbg", "--key", "key")

    assert "There is no key in ~/.ssh: give one with --key FILE" in no_key.stderr
    assert "--key cannot be 'nowhere': there is no such file." in missing.stderr
    assert "ssh-keygen cannot sign with 'text':" in wrong.stderr
    assert "is damaged" in damaged.stderr
    assert [done.returncode for done in (no_key, missing, wrong)] == [2, 2, 2] and damaged.returncode == 1
    assert list(place.top.glob("*.sig")) == []


def test_a_group_is_signed_as_a_whole(place: Place) -> None:
    directory = write_group_of(place.top, "run", 2)
    done = place.tool("sign", "run.rdbgs", "--key", "key")
    listed = place.tool("ps", "run.rdbgs")

    facts = directory / "group.json"
    facts.write_bytes(facts.read_bytes() + b" ")
    changed = place.tool("ps", "run.rdbgs")
    place.tool("rm", "run.rdbgs")

    assert done.returncode == 0, done.stderr
    assert [Path(line).name for line in done.stdout.split()] == ["group.json.sig", "1.rdbg.sig", "2.rdbg.sig"]
    assert listed.returncode == 0
    assert changed.returncode == 1 and "does not match" in changed.stderr
    assert not directory.exists()


def test_recording_has_no_cost_for_signatures(tmp_path: Path) -> None:
    """No program is started for a recording without a signature: there may be no ssh-keygen."""
    (tmp_path / "one.py").write_text("print('hello')\n")
    recording = record_file(tmp_path / "one.py", tmp_path)
    command = [sys.executable, "-X", "importtime", "-m", "replaydbg", "info", str(recording)]

    done = subprocess.run(command, env={**os.environ, "PATH": "/nowhere"}, capture_output=True, text=True, check=False)

    assert done.returncode == 0
    assert "subprocess" not in done.stderr
