"""A server (asyncio) enters what its clients send, each entry once, and acknowledges it; clients connect again if lost.

The clients are tasks of the same program. An entry has a number, so the server knows one that comes a second time.
"""
import asyncio
import sys

count, clients = int(sys.argv[1]), 2
known = set()


async def serve(reader, writer):
    try:
        while line := await reader.readline():
            number = int(line)
            if number not in known:
                known.add(number)
                ledger.write(b"%d\n" % number)
            writer.write(line)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def send(port, first):
    number = first
    while number < count:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while number < count:
                writer.write(b"%d\n" % number)
                await writer.drain()
                if await reader.readline() != b"%d\n" % number:
                    break  # lost
                number += clients
            writer.close()
        except ConnectionError:
            await asyncio.sleep(0.01)


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(send(port, first) for first in range(clients)))
    server.close()


with open("ledger", "ab", buffering=0) as ledger:
    asyncio.run(main())
print("entered", count)
