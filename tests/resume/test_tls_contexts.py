"""A TLS context of a resumed program has its certificates again, although no recording contains them."""

import os
import re
import shutil
from pathlib import Path

import pytest

from replaydbg.resources.tls_events import FILE_ARGUMENTS
from tests.resume.going_on import KILLED, assert_goes_on, own_events, record_in, resume_in

pytestmark = pytest.mark.slow

_CORE = Path(__file__).parents[2] / "replaydbg" / "native" / "resume" / "contexts.c"
_CERTIFICATES = Path(__file__).parents[2] / "fixtures" / "tls" / "conversations" / "certificate.py"

_CONTEXTS = """
import os, ssl
from certificate import PASSWORD

def handshake(server, client):
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = server.wrap_bio(to_server, to_client, server_side=True)
    other = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    for _ in range(4):
        for each in (other, one):
            try:
                each.do_handshake()
            except ssl.SSLWantReadError:
                pass
    one.write(b"hello")
    return other.read(), other.version(), other.selected_alpn_protocol(), other.getpeercert()["version"]

def again(server, client):
    # What was under way ended with the process that is gone.
    while True:
        try:
            return handshake(server, client)
        except (ssl.SSLError, ValueError):
            pass

def password():
    return PASSWORD

server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
server.load_cert_chain("certificate.pem", keyfile="locked-key.pem", password=password)
server.set_alpn_protocols(["replay"])
os.chdir("below")
client = ssl.create_default_context(cafile="../certificate.pem")
client.set_alpn_protocols(["replay"])
gone = ssl.create_default_context(cafile="../certificate.pem")
gone.load_verify_locations("only-once.pem")
del gone
os.remove("only-once.pem")
for _ in range(6):
    os.stat(".")
print(again(server, client))
with open("only-once.pem", "w") as file:
    file.write(open("../certificate.pem").read())
"""

_SERVER = """
import asyncio, ssl

server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
server_side.load_cert_chain("certificate.pem", "key.pem")
client_side = ssl.create_default_context(cafile="certificate.pem")
seen = set()

async def serve(reader, writer):
    try:
        while line := await reader.readline():
            seen.add(int(line))
            writer.write(line)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()

async def ask(port, number):
    while True:
        try:
            async with asyncio.timeout(5):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", port, ssl=client_side, server_hostname="localhost")
                writer.write(b"%d\\n" % number)
                answer = await reader.readline()
                writer.close()
                if answer:
                    return int(answer)
        except (ConnectionError, ssl.SSLError, TimeoutError):
            await asyncio.sleep(0.01)

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_side)
    port = server.sockets[0].getsockname()[1]
    answers = [await ask(port, number) for number in range(3)]
    print(answers, sorted(seen))

asyncio.run(main())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with certificates, and another one in it."""
    shutil.copy(_CERTIFICATES, tmp_path)
    names: dict[str, object] = {}
    exec(_CERTIFICATES.read_text(), names)
    (tmp_path / "below").mkdir()
    for name, text in (("certificate", "CERTIFICATE"), ("key", "KEY"), ("locked-key", "LOCKED_KEY")):
        (tmp_path / f"{name}.pem").write_text(str(names[text]))
    shutil.copy(tmp_path / "certificate.pem", tmp_path / "below" / "only-once.pem")
    return tmp_path


def test_contexts_load_again_what_they_had(folder: Path) -> None:
    (folder / "program.py").write_text(_CONTEXTS)

    assert_goes_on(folder, 6)


def test_an_asyncio_server_listens_again_and_clients_reconnect(folder: Path) -> None:
    (folder / "program.py").write_text(_SERVER)

    assert_goes_on(folder, 6)


def _killed(folder: Path) -> None:
    (folder / "program.py").write_text(_CONTEXTS)
    record_in(folder, "whole")
    events = own_events(folder / "whole.rdbg")
    assert record_in(folder, "killed", killed_at=events[-1] - 12).status in KILLED


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_that_is_gone_or_was_changed_is_listed(folder: Path, is_gone: bool) -> None:
    _killed(folder)
    if is_gone:
        (folder / "locked-key.pem").unlink()
    else:
        os.utime(folder / "locked-key.pem")

    refused = resume_in(folder, "killed")

    assert refused.status == 2
    word = b"is gone" if is_gone else b"was changed after the program had loaded it"
    assert b"locked-key.pem " + word in refused.stderr
    assert not (folder / "killed-on.rdbg").exists()


def test_a_key_that_cannot_be_loaded_is_named(folder: Path) -> None:
    _killed(folder)
    key = folder / "locked-key.pem"
    loaded = key.stat()
    key.write_text("no key")
    os.utime(key, ns=(loaded.st_atime_ns, loaded.st_mtime_ns))  # so it is found only when it is loaded again

    refused = resume_in(folder, "killed")

    assert refused.status == 2
    assert f"its TLS context: load_cert_chain failed for {folder / 'certificate.pem'}: " in refused.stderr.decode()
    assert not (folder / "killed-on.rdbg").exists()


def test_the_plan_has_the_files(folder: Path) -> None:
    _killed(folder)

    planned = resume_in(folder, "killed", "--plan")

    certificate, key = folder / "certificate.pem", folder / "locked-key.pem"
    assert f"TLS: load_cert_chain of {certificate}, {key}: loaded again" in planned.stdout.decode()
    assert f"TLS: load_verify_locations of {folder / 'below'}" not in planned.stdout.decode()


def test_the_core_and_the_log_agree_which_arguments_are_files() -> None:
    """The launcher sends the paths of one list, and the core uses them as those of the other one."""
    table = re.search(r"\} loaders\[\] = \{(.*?)\n\};", _CORE.read_text(), re.DOTALL)
    assert table is not None
    rows = re.findall(r'\{"(\w+\.\w+)", \{(.*?)\}, (?:true|false)\}', table[1])
    in_core = {f"_ssl.{name}": tuple(re.findall(r'"(\w+)"', files)) for name, files in rows}

    assert len(rows) == table[1].count("_SSLContext.") and FILE_ARGUMENTS.items() <= in_core.items()
    # Calls without files load nothing that the log has to show, except for the default certificates.
    assert all(not files for name, files in in_core.items() if name not in FILE_ARGUMENTS)


_LOST = """
import os, signal, socket, ssl, threading

server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
server_side.load_cert_chain("certificate.pem", "key.pem")
client_side = ssl.create_default_context(cafile="certificate.pem")

def serve():
    with server_side.wrap_socket(listener.accept()[0], server_side=True) as served:
        served.sendall(b"hello")
        done.wait()

done = threading.Event()
with socket.create_server(("127.0.0.1", 0)) as listener:
    threading.Thread(target=serve, daemon=True).start()
    address = listener.getsockname()
    connection = client_side.wrap_socket(socket.create_connection(address), server_hostname="localhost")
    connection.recv(5)
os.kill(os.getpid(), signal.SIGKILL)
try:
    print(connection.recv(5))
except OSError:
    print(b"")
try:
    connection.send(b"more")
except OSError as error:
    print("raised")
"""


def test_a_lost_connection_under_tls_ends_or_raises_as_the_plan_says(folder: Path) -> None:
    (folder / "program.py").write_text(_LOST)
    assert record_in(folder, "killed").status in KILLED

    planned, resumed = (resume_in(folder, "killed", "--in-flight=skip", *more) for more in (["--plan"], []))

    assert b", with TLS (descriptor " in planned.stdout
    assert b"): the next read ends (EOF) or raises, the next write raises\n" in planned.stdout
    assert (resumed.status, resumed.stdout) == (0, b"b''\nraised\n"), resumed
