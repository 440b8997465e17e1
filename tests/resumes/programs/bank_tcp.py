"""Four banks that send each other money over TCP, by asyncio: `bank_tcp.py ROUNDS`; writes what they have in all."""

import asyncio
import os
import random
import socket
import sys

BANKS, START = 4, 1000
ROUNDS = int(sys.argv[1])


async def run(number, listener, ports):
    balance, chance = START, random.Random(number)
    readers = asyncio.Queue()
    server = await asyncio.start_server(lambda reader, writer: readers.put_nowait((reader, writer)), sock=listener)
    writers = []
    for other, port in enumerate(ports):
        if other != number:
            writers.append((await asyncio.open_connection("127.0.0.1", port))[1])
    accepted = [await readers.get() for _ in range(BANKS - 1)]
    if number == 0:
        open("begun", "w").close()
    for turn in range(ROUNDS):
        chosen = chance.choice(writers)
        amount = chance.randrange(1, 50)
        balance -= amount
        for writer in writers:
            writer.write(b"%d\n" % (amount if writer is chosen else 0))
        for reader, _ in accepted:
            balance += int(await reader.readline())
    for writer in writers:
        writer.close()
    for reader, writer in accepted:
        assert await reader.read() == b""
        writer.close()
    server.close()
    return balance


listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(BANKS)]
ports = [each.getsockname()[1] for each in listeners]
told, tell = os.pipe()
children = []
for number in range(1, BANKS):
    pid = os.fork()
    if not pid:
        balance = asyncio.run(run(number, listeners[number], ports))
        os.write(tell, b"%d\n" % balance)
        os._exit(0)
    children.append(pid)
total = asyncio.run(run(0, listeners[0], ports))
os.close(tell)
data = b""
while piece := os.read(told, 100):
    data += piece
total += sum(map(int, data.split()))
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
with open("ledger", "w") as file:
    file.write(f"{total}\n")
print("total", total)
