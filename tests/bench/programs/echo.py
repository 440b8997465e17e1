"""20,000 lines sent to an asyncio server in the same loop and back, over ten connections at once."""

import asyncio
import time

CONNECTIONS = 10
LINES = 2_000


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(line)
        await writer.drain()
    writer.close()


async def _ask(port: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    size = 0
    for number in range(LINES):
        writer.write(b"line %d\n" % number)
        size += len(await reader.readline())
    writer.close()
    await writer.wait_closed()
    return size


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    started = time.perf_counter()
    total = sum(await asyncio.gather(*(_ask(port) for _ in range(CONNECTIONS))))
    took = time.perf_counter() - started
    server.close()
    print(total)
    print(f"{1e6 * took / (CONNECTIONS * LINES):.2f} us a message")


asyncio.run(_main())
