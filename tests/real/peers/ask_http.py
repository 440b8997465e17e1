"""Asks a web server a number of questions from several threads at once, checks each answer, and ends the server."""

import http.client
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

# A server may need this long to start under a busy machine.
_PATIENCE_SECONDS = 60.0
_THREADS = 8


def main(port: int, count: int, ending: str) -> int:
    """0 if all `count` answers were right. At the end the server is asked to end (`end`), or gets SIGINT (`signal`)."""
    print("ready", flush=True)
    _wait_until_listening(port)
    pid = int(_ask(port, "GET", "/pid")[1]) if ending == "signal" else 0
    numbers = iter(range(count))
    wrong: list[str] = []
    lock = threading.Lock()
    threads = [threading.Thread(target=_ask_all, args=(port, numbers, lock, wrong)) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if pid:
        os.kill(pid, signal.SIGINT)
    else:
        # The server may end before it has answered.
        with suppress(http.client.RemoteDisconnected, ConnectionResetError):
            _ask(port, "GET", "/end")
    for line in wrong[:5]:
        print(line, file=sys.stderr)
    return int(bool(wrong))


def _wait_until_listening(port: int) -> None:
    limit = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            _ask(port, "GET", "/page/1")
            return
        except ConnectionRefusedError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.05)


def _ask_all(port: int, numbers: Iterator[int], lock: threading.Lock, wrong: list[str]) -> None:
    while True:
        with lock:
            number = next(numbers, None)
        if number is None:
            return
        try:
            _check_one(port, number)
        except (AssertionError, OSError, http.client.HTTPException) as error:
            wrong.append(f"request {number}: {type(error).__name__}: {error}")


def _check_one(port: int, number: int) -> None:
    if number % 50 == 7:
        status, _ = _ask(port, "GET", f"/wrong?key=key{number}")
        assert status == 500, status
    elif number % 4 == 1:
        status, answer = _ask(port, "POST", "/job", {"number": number})
        assert status == 200 and "thread" in json.loads(answer), (status, answer[:100])
    elif number % 4 == 2:
        status, answer = _ask(port, "GET", "/job")
        assert status in (200, 404), (status, answer[:100])
    else:
        status, answer = _ask(port, "GET", f"/page/{number}")
        assert status == 200 and answer.startswith(f"page {number}".encode()), (status, _title(answer))
    time.sleep(random.random() / 1000)


def _title(answer: bytes) -> str:
    """The title of a framework's own page about an error."""
    return " ".join(answer.decode(errors="replace").partition("<title>")[2].partition("</title>")[0].split())


def _ask(port: int, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_SECONDS)
    try:
        if body is None:
            connection.request(method, path)
        else:
            connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
