"""Servers and clients in one program: a future has connections between its own threads."""

from pathlib import Path

import pytest

from tests.futures.made import Ground

pytestmark = pytest.mark.slow

SERVER = """import socket, threading, time
def serve(listener):
    connection, (host, port) = listener.accept()
    with connection:
        said = connection.recv(100)
        connection.sendall(b"%s from %d" % (said, port))
def ask(address):
    with socket.create_connection(address) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(b"hello")
        own = client.getsockname()[1]
        assert client.getpeername() == address and client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        answer = b""
        while more := client.recv(100):
            answer += more
    assert answer == b"hello from %d" % own, (answer, own)
"""


def _passes(ground: Ground, at: int, count: int = 6) -> None:
    found = ground.futures(at, count, "-o", "kept", "--keep", "all")
    assert (found["passed"], found["failed"], found["inconclusive"]) == (count, 0, 0), found["groups"]
    assert {ground.replay(name).status for group in found["groups"] for name in group["recordings"]} == {0}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", ""])
def test_a_server_that_begins_in_the_future(host: str, tmp_path: Path) -> None:
    text = f"""{SERVER}
time.monotonic()
listener = socket.create_server(({host!r}, 0))
thread = threading.Thread(target=serve, args=(listener,))
thread.start()
ask(("127.0.0.1", listener.getsockname()[1]))
thread.join()
listener.close()
"""
    ground = Ground.make(tmp_path, text)

    _passes(ground, ground.event("time.monotonic"))


def test_a_server_that_listens_already(tmp_path: Path) -> None:
    text = f"""{SERVER}
listener = socket.create_server(("127.0.0.1", 0))
threads = [threading.Thread(target=serve, args=(listener,)) for _ in range(2)]
for thread in threads: thread.start()
time.sleep(0.05)
time.monotonic()
for _ in range(2): ask(listener.getsockname())
for thread in threads: thread.join()
"""
    ground = Ground.make(tmp_path, text)

    _passes(ground, ground.event("time.monotonic"))


def test_a_connection_with_bytes_under_way(tmp_path: Path) -> None:
    text = """import socket, threading, time
listener = socket.create_server(("127.0.0.1", 0))
first = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
server.sendall(b"sent before")
assert first.recv(5) == b"sent "
first.sendall(b"said before")
second = socket.create_connection(listener.getsockname())
second.sendall(b"not yet accepted")
time.monotonic()
def late():
    with listener.accept()[0] as other:
        assert other.recv(100) == b"not yet accepted"
        other.sendall(b"now it is")
thread = threading.Thread(target=late)
thread.start()
assert (first.recv(100), server.recv(100)) == (b"before", b"said before")
assert second.recv(100) == b"now it is"
server.close()
assert first.recv(100) == b""
thread.join()
"""
    ground = Ground.make(tmp_path, text)

    _passes(ground, ground.event("time.monotonic"))


def test_an_end_that_was_sent_before(tmp_path: Path) -> None:
    """One thread waits for it in a connection, another one in a pair; a third one is still to send."""
    text = """import socket, threading, time
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
one, other = socket.socketpair()
def receive(end):
    got = b""
    while more := end.recv(9): got += more
    assert got == b"last words", got
    end.sendall(b"understood")
threads = [threading.Thread(target=receive, args=(end,)) for end in (server, other)]
for thread in threads: thread.start()
for end in (client, one): end.sendall(b"last words")
for end in (client, one): end.shutdown(socket.SHUT_WR)
time.monotonic()
for end in (client, one): assert end.recv(10) == b"understood"
for thread in threads: thread.join()
"""
    ground = Ground.make(tmp_path, text)

    _passes(ground, ground.event("time.monotonic"))


def test_servers_and_clients_of_asyncio(tmp_path: Path) -> None:
    text = """import asyncio, time
async def answer(reader, writer):
    writer.writelines([(await reader.readline()).upper(), b"end\\n"])
    await writer.drain()
    writer.close()
async def ask(port, number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"question %d\\n" % number)
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return answer
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await ask(port, 0)
    time.perf_counter()
    answers = await asyncio.gather(*(ask(port, number) for number in range(4)))
    assert answers == [b"QUESTION %d\\nend\\n" % number for number in range(4)], answers
    server.close()
asyncio.run(main())
"""
    ground = Ground.make(tmp_path, text)

    _passes(ground, ground.event("time.perf_counter"))


HTTP = """import http.server, threading, time, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/"
"""


def test_a_server_of_http(tmp_path: Path) -> None:
    text = f"""{HTTP}
time.monotonic()
for _ in range(2):
    assert urllib.request.urlopen(url, timeout=5).read() == b"hello"
server.shutdown()
server.server_close()
"""
    ground = Ground.make(tmp_path, text)

    _passes(ground, ground.event("time.monotonic"))


REFUSALS = {
    "nobody listens any more": ("listener.close(); socket.create_connection(address)", "ConnectionRefusedError"),
    "an address that is taken": ("socket.socket().bind(address)", "OSError(98"),
    "no connection": ("socket.socket().recv(1)", "OSError(107"),
    "nobody to accept": ("listener.setblocking(False); listener.accept()", "BlockingIOError"),
    "nobody in time": ("listener.settimeout(3); listener.accept()", "TimeoutError"),
    "a listener that is shut down": (
        "threading.Timer(2, listener.shutdown, (2,)).start(); listener.accept()",
        "OSError(22",
    ),
    "not accepted before the end": (
        "client = socket.create_connection(address); client.sendall(b'x'); listener.close(); client.recv(1)",
        "ConnectionResetError",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_errors_are_those_of_the_network(what: str, tmp_path: Path) -> None:
    act, error = REFUSALS[what]
    text = f"""import socket, threading, time
listener = socket.create_server(("127.0.0.1", 0))
address = listener.getsockname()
time.monotonic()
try:
    {act}
except Exception as error:
    assert repr(error).startswith({error!r}), repr(error)
else:
    raise SystemExit("no error")
"""
    ground = Ground.make(tmp_path, text)

    _passes(ground, ground.event("time.monotonic"), 1)  # nothing can vary


AS_BY_TCP = {
    "a listener that was closed": """
listener.settimeout(0.05)
def serve():
    while True:
        try: listener.accept()
        except TimeoutError: pass
        except OSError as error: ended.append(error.errno); return
ended = []
thread = threading.Thread(target=serve)
thread.start(); time.sleep(0.02); listener.close(); thread.join()
assert ended == [9], ended
""",
    "a socket that does not listen": """
bound = socket.socket(); bound.bind(("127.0.0.1", 0))
try: bound.accept()
except OSError as error: assert error.errno == 22
else: raise SystemExit("accepted")
""",
    "a port that is shared": """
shared = socket.create_server(("127.0.0.1", 0), reuse_port=True)
assert shared.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) == 1
""",
    "connecting without waiting": """
def connect(to):
    client = socket.socket()
    client.setblocking(False)
    try: client.connect(to)
    except BlockingIOError as error: assert error.errno == 115
    else: raise SystemExit("connected at once")
    select.select([], [client], [], 5)
    return client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
assert connect(address) == 0
listener.close()
assert connect(address) == 111
""",
    "an end is no hanging up": """
client = socket.create_connection(address)
server, _ = listener.accept()
client.sendall(b"order"); client.close()
poll = select.poll(); poll.register(server, select.POLLIN)
epoll = select.epoll(); epoll.register(server, select.EPOLLIN)
assert poll.poll() == [(server.fileno(), select.POLLIN)] and epoll.poll() == [(server.fileno(), select.EPOLLIN)]
assert (server.recv(9), server.recv(9)) == (b"order", b"")
server.shutdown(socket.SHUT_WR)
assert poll.poll() == [(server.fileno(), select.POLLIN | select.POLLHUP)]
epoll.close()
""",
    "much that nobody reads yet": """
client = socket.create_connection(address)
server, _ = listener.accept()
client.sendall(b"x" * 250_000)
done = 0
while done < 250_000: done += len(server.recv(65_536))
""",
    "version 6 alone": """
if socket.has_ipv6:
    alone = socket.socket(socket.AF_INET6)
    alone.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    alone.bind(("::", 0)); alone.listen()
    socket.create_connection(("::1", alone.getsockname()[1]))
""",
    "a reader is stopped": """
client = socket.create_connection(address)
server, _ = listener.accept()
got = []
thread = threading.Thread(target=lambda: got.append(client.recv(9)))
thread.start(); time.sleep(0.02)
client.shutdown(socket.SHUT_RDWR); client.close()
thread.join()
assert got == [b""], got
""",
    "all or nothing": """
client = socket.create_connection(address)
server, _ = listener.accept()
def send():
    for _ in range(5): server.sendall(b"ab"); time.sleep(0.01)
thread = threading.Thread(target=send)
thread.start()
assert client.recv(10, socket.MSG_WAITALL) == b"ababababab"
thread.join()
""",
}


@pytest.mark.parametrize("what", AS_BY_TCP)
def test_it_is_as_by_tcp(what: str, tmp_path: Path) -> None:
    text = f"""import select, socket, threading, time
listener = socket.create_server(("127.0.0.1", 0))
address = listener.getsockname()
time.monotonic()
{AS_BY_TCP[what]}
"""
    ground = Ground.make(tmp_path, text)

    found = ground.futures(ground.event("time.monotonic"), 3, "-o", "kept", "--keep", "all")

    assert (found["failed"], found["inconclusive"]) == (0, 0) and found["passed"] > 0, found["groups"]
    assert {ground.replay(name).status for group in found["groups"] for name in group["recordings"]} == {0}


def test_more_than_a_connection_holds_has_no_verdict(tmp_path: Path) -> None:
    """What fits depends on a setting of the machine, and is less than TCP holds."""
    text = """import signal, socket, time
def stop(*_): raise SystemExit(0)
signal.signal(signal.SIGALRM, stop)
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
signal.alarm(1)
time.sleep(60)
client.sendall(b"x" * 64_000_000)
"""
    ground = Ground.make(tmp_path, text)

    group = ground.one(ground.event("time.sleep"))

    assert group["verdict"] == "inconclusive" and "more room in a connection" in group["ending"], group


OUTSIDE = {
    "somebody else's address": "socket.create_connection(('127.0.0.1', 9))",
    "another machine": "socket.create_connection(('192.0.2.1', 80), timeout=1)",
    "a name": "socket.create_connection(('server.invalid', 80), timeout=1)",
    "another version's address": "socket.create_connection(('127.0.0.1', alone.getsockname()[1]))",
    "datagrams": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "a connection from elsewhere": "known.sendall(b'x')",
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_other_addresses_are_outside(what: str, tmp_path: Path) -> None:
    text = f"""import signal, socket, subprocess, sys, threading, time
def stop(*_): raise SystemExit(0)
signal.signal(signal.SIGALRM, stop)
listener = socket.create_server(("127.0.0.1", 0))
alone = socket.create_server(("::", 0), family=socket.AF_INET6)
connect = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(1)"
child = subprocess.Popen([sys.executable, "-c", connect, str(listener.getsockname()[1])])
known, _ = listener.accept()
signal.alarm(1)
time.monotonic()
time.sleep(60)
{OUTSIDE[what]}
"""
    ground = Ground.make(tmp_path, text, "--children=none")

    group = ground.one(ground.event("time.sleep"))

    assert group["verdict"] == "inconclusive" and "needs" in group["ending"], group
