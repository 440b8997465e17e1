"""No file of a recording has a planted secret, in any usual encoding; with the key, it replays as it was."""

from __future__ import annotations

import base64
import json
import os
import random
import string
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote

import pytest

from replaydbg.heap.storage.recorded_snapshots import load_series
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.sections import SealedFile
from tests.harness import tool
from tests.harness.children import completed
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow

EACH = 10
_WORDS = string.ascii_letters + string.digits


class Planted(NamedTuple):
    """A program with secrets."""

    source: str
    files: Mapping[str, str] = MappingProxyType({})
    env: Mapping[str, str] = MappingProxyType({})
    words: tuple[str, ...] = ()
    stdin: str = ""


_READ = "import sys\nfor path in sys.argv[1:]:\n    data = open(path).read()\n    print(len(data))\n"


def _token(draw: random.Random, length: int = 20) -> str:
    return "".join(draw.choices(_WORDS, k=length))


def _odd(draw: random.Random) -> str:
    """Return a password with characters that are escaped in several ways."""
    return _token(draw, 8) + draw.choice(["+/", "%&", "ä€", "#?"]) + _token(draw, 4)


def _files(make: Callable[[str], str], secrets: list[str]) -> Planted:
    files = {f"{number}.txt": make(each) for number, each in enumerate(secrets)}
    return Planted(_READ, files, words=tuple(files))


def _pem(secret: str) -> str:
    return f"-----BEGIN RSA PRIVATE KEY-----\n{secret}\n{secret[::-1]}\n-----END RSA PRIVATE KEY-----\n"


_ARGUMENTS = """\
import subprocess, sys
for line in open("words").read().split():
    subprocess.run([sys.executable, "-c", "import sys; print(len(sys.argv))", "--password", line])
"""
_RESPONSES = """\
import http.client, http.server, json, threading
tokens = open("tokens").read().split()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"access_token": tokens[int(self.path[1:])], "expires_in": 3600}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", f"sid={tokens[-1]}; Path=/; HttpOnly")
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for number in range(len(tokens)):
    connection = http.client.HTTPConnection(*server.server_address)
    connection.request("GET", f"/{number}", headers={"Authorization": f"Bearer {tokens[number]}"})
    print(len(json.load(connection.getresponse())["access_token"]))
server.shutdown()
"""
_HEAP = """\
import os, replaydbg
kept = {name: value for name, value in os.environ.items() if name.endswith("_TOKEN")}
copies = [f"prefix {value} suffix" for value in kept.values()]
replaydbg.snapshot("here")
print(len(copies))
"""
_STRIPPED = """\
import os
for name, value in os.environ.items():
    if "PASSWORD" in name or "KEYS" in name:
        print(len(value), value.strip(" \\n'\\"").rpartition(" ")[2].rpartition(":")[2].split(",")[0])
"""
_AROUND = (
    "{}",
    "{}\n",
    " {} ",
    '"{}"',
    "'{}'",
    "bob:{}",
    "bob@example.org:{}\n",
    '"bob:{}"',
    "Bearer {}",
    "{},abcdefgh1234",
)
KINDS: dict[str, tuple[Callable[[random.Random], str], Callable[[list[str]], Planted]]] = {
    "variables": (
        _odd,
        lambda each: Planted("import os\nprint(len(os.environ))\n", env={f"S{n}_TOKEN": s for n, s in enumerate(each)}),
    ),
    "variables that are printed": (
        _token,
        lambda each: Planted(
            "import os\nfor name in sorted(os.environ):\n    if name.endswith('API_KEY'): print(os.environ[name])\n",
            env={f"S{n}_API_KEY": s for n, s in enumerate(each)},
        ),
    ),
    "variables with odd values": (
        _token,
        lambda each: Planted(
            _STRIPPED,
            env={f"S{n}_PASSWORD": form.format(s) for n, (form, s) in enumerate(zip(_AROUND, each, strict=True))},
        ),
    ),
    "variables with settings in their values": (
        lambda draw: draw.choice(["my-secret-", "/", "token.", "0"]) + _token(draw, 12),
        lambda each: Planted(_STRIPPED, env={f"S{n}_SERVICE_KEYS": s for n, s in enumerate(each)}),
    ),
    "the user's own patterns": (
        lambda draw: f"ACME-{_token(draw, 12)}",
        lambda each: Planted(
            _READ,
            {f"{n}.txt": f"nothing that is known: {s}.\n" for n, s in enumerate(each)},
            {"REPLAYDBG_SECRET_PATTERNS": r"known: (ACME-[A-Za-z0-9]+)"},
            tuple(f"{n}.txt" for n in range(EACH)),
        ),
    ),
    "forms": (
        lambda draw: f"alice-pw{draw.randrange(10**4, 10**8)}",
        lambda each: _files(lambda s: f"POST /login HTTP/1.1\r\nHost: x\r\n\r\nuser=u&password={s}", each),
    ),
    "database URLs in variables": (
        _token,
        lambda each: Planted(
            "import os\nprint(len(os.environ))\n",
            env={f"DB{n}": f"postgresql://app:{s}@db:5432/x" for n, s in enumerate(each)},
        ),
    ),
    "authorization": (
        _token,
        lambda each: _files(lambda s: f"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {s}\r\n\r\n", each),
    ),
    "basic authorization": (
        _token,
        lambda each: _files(
            lambda s: "Authorization: Basic " + base64.b64encode(f"user:{s}".encode()).decode() + "\r\n", each
        ),
    ),
    "cookies": (_token, lambda each: _files(lambda s: f"Cookie: theme=dark; sessionid={s}; a=b\r\n", each)),
    "settings": (_odd, lambda each: _files(lambda s: f"[db]\nuser = me\npassword = {s}\n", each)),
    "JSON": (_odd, lambda each: _files(lambda s: json.dumps({"user": "me", "client_secret": s}), each)),
    "YAML": (_token, lambda each: _files(lambda s: f"db:\n  user: me\n  password: {s}7\n", each)),
    "dotenv": (_token, lambda each: _files(lambda s: f"A=1\nMY_API_KEY={s}7\n", each)),
    "private keys": (lambda draw: _token(draw, 64), lambda each: _files(_pem, each)),
    "AWS": (
        lambda draw: _token(draw, 40),
        lambda each: _files(
            lambda s: f"[default]\naws_access_key_id = AKIAABCDEFGHIJKLMNOP\naws_secret_access_key = {s}\n", each
        ),
    ),
    "GitHub": (
        lambda draw: "ghp_" + _token(draw, 36),
        lambda each: _files(lambda s: f"clone https://x:{s}@github.com/a/b\n{s}\n", each),
    ),
    "database URLs in files": (
        _token,
        lambda each: _files(lambda s: f"url = mysql+pymysql://root:{s}@127.0.0.1/x\n", each),
    ),
    "web tokens": (
        lambda draw: f"eyJhbGciOi{_token(draw)}.eyJzdWIi{_token(draw)}.{_token(draw, 30)}",
        lambda each: _files(lambda s: f"jwt {s}\n", each),
    ),
    "URLs": (_token, lambda each: _files(lambda s: f"GET /login?user=me&password={s}&next=1 HTTP/1.1\r\n", each)),
    "command lines": (
        _odd,
        lambda each: Planted(
            "import sys\nprint(len(sys.argv))\n", words=tuple(w for s in each for w in ("--password", s))
        ),
    ),
    "command lines with options": (
        _token,
        lambda each: Planted("import sys\nprint(len(sys.argv))\n", words=tuple(f"--token={s}" for s in each)),
    ),
    "arguments of children": (_token, lambda each: Planted(_ARGUMENTS, {"words": "\n".join(each)})),
    "responses": (_token, lambda each: Planted(_RESPONSES, {"tokens": "\n".join(each)})),
    "heap": (_token, lambda each: Planted(_HEAP, env={f"S{n}_TOKEN": s for n, s in enumerate(each)})),
    "sources": (
        lambda draw: "sk_live_" + _token(draw, 24),
        lambda each: Planted("import keys\nprint(len(keys.KEYS))\n", {"keys.py": f"KEYS = {each!r}\n"}),
    ),
    "standard input": (
        _token,
        lambda each: Planted(
            "import sys\nprint(len(sys.stdin.read()))\n", stdin="\n".join(f'"password": "{s}"' for s in each)
        ),
    ),
}


def plant(kind: str, place: Path) -> tuple[list[str], Planted]:
    """Write a program with secrets of a kind into a directory; return these and what it needs besides."""
    make, planted_with = KINDS[kind]
    draw = random.Random(kind)
    secrets = [make(draw) for _ in range(EACH)]
    planted = planted_with(secrets)
    (place / "prog.py").write_text(planted.source)
    for name, content in planted.files.items():
        (place / name).write_text(content)
    return secrets, planted


def encodings(secret: str) -> Iterator[bytes]:
    data = secret.encode()
    yield from (data, data.hex().encode(), data.hex().upper().encode(), quote(secret, safe="").encode())
    yield from (json.dumps(secret)[1:-1].encode(), secret.encode("utf-16-le"), secret.encode("utf-16-be"))
    yield from (repr(secret)[1:-1].encode(), repr(data)[2:-1].encode())
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b" " * shift + data)[4 if shift else 0 : -4]


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what is in the files below a path: their bytes, and those of the sections of recordings."""
    for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if each.is_file():
            yield str(each), each.read_bytes()
        if each.name.endswith(".rdbg"):
            with open_recording(each) as recording:
                for number, snapshot in enumerate(load_series(recording, lambda _: None)):
                    yield (
                        f"{each}, snapshot {number}",
                        b"\n".join(map(snapshot.strings.raw, range(len(snapshot.strings)))),
                    )
            sealed = SealedFile(each)
            for name in sealed.names():
                yield f"{each}, {name}", b"".join(sealed.stored_pieces(name))
            sealed.close()


@pytest.mark.parametrize("kind", KINDS)
def test_no_secret_is_in_any_file(kind: str, tmp_path: Path) -> None:
    place, made = tmp_path / "place", tmp_path / "made"
    place.mkdir()
    made.mkdir()
    secrets, planted = plant(kind, place)
    env = {**passed_on(), "PATH": os.environ["PATH"], "XDG_DATA_HOME": str(tmp_path / "data"), **planted.env}

    command = tool.record(sys.executable, made / "r", ["prog.py", *planted.words], options=["--children=python"])
    recorded = run(command, cwd=place, env=env, stdin=planted.stdin.encode())
    assert recorded.status == 0, recorded
    if (made / "r.rdbgs").is_dir():
        completed(made / "r.rdbgs")

    for where, found in _contents(made):
        least = 8 if "snapshot" in where else None  # of texts in them only the beginning is stored
        assert [form for secret in secrets for form in encodings(secret) if form[:least] in found] == [], where
    for _ in range(3):
        replayed: Outcome = run(
            [sys.executable, "-m", "replaydbg", "replay", "-q", str(made / "r")], cwd=place, env=env
        )
        assert (replayed.status, replayed.stdout) == (0, recorded.stdout), replayed
