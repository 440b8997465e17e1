"""Talks with a server over several websockets at once and over HTTP, and checks that each message comes back."""

import asyncio
import json
import random
import sys

# Pinned with the programs; where the types are checked it is not installed.
from websockets.asyncio.client import ClientConnection, connect  # type: ignore[import-not-found,unused-ignore]

_PATIENCE_SECONDS = 60.0
_CONNECTIONS = 6


async def _main(port: int, messages: int) -> int:
    print("ready", flush=True)
    async with asyncio.timeout(_PATIENCE_SECONDS):
        await _wait_until_listening(port)
        async with asyncio.TaskGroup() as group:
            for number in range(_CONNECTIONS):
                group.create_task(_talk(port, number, messages))
            for number in range(20):
                group.create_task(_ask(port, number))
        await _fetch(port, "/end")
    return 0


async def _wait_until_listening(port: int) -> None:
    while True:
        try:
            await _fetch(port, "/hello")
            return
        except ConnectionRefusedError:
            await asyncio.sleep(0.05)


async def _ask(port: int, number: int) -> None:
    answer = await _fetch(port, f"/hello?number={number}")
    assert b"200 OK" in answer and b"hello" in answer, answer[:200]


async def _fetch(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    try:
        return await reader.read()
    finally:
        writer.close()


async def _talk(port: int, number: int, messages: int) -> None:
    async with connect(f"ws://127.0.0.1:{port}/talk", max_size=None) as socket:
        await socket.send("hello")
        await _expect(socket, "hello")
        for index in range(messages):
            text = json.dumps({"from": number, "index": index, "fill": "x" * random.choice((1, 100, 5000))})
            await socket.send(text)
            await _expect(socket, text)
        blob = random.randbytes(200_000)
        await socket.send(blob)
        await _expect(socket, blob)
        await (await socket.ping())
        # Everybody hears it, in the midst of their own messages.
        await socket.send(f"all:{number}")
        await _expect(socket, f"all:{number}")


async def _expect(socket: ClientConnection, what: str | bytes) -> None:
    """Reads until `what` comes; what others said to all may come before."""
    while (message := await socket.recv()) != what:
        assert isinstance(message, str) and message.startswith("all:"), message[:100]


def main(port: int, messages: int) -> int:
    """0 if every message came back."""
    return asyncio.run(_main(port, messages))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
