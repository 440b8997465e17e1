# mypy: ignore-errors
# ruff: noqa
"""Four event loops in four threads: streams, task groups, timeouts, async generators, to_thread, calls between loops."""

import asyncio
import random
import threading
import time

lines = []
loops = {}
ready = threading.Barrier(4)


def say(*what):
    lines.append((threading.current_thread().name, *what))


async def serve(reader, writer):
    async for line in reader:
        await asyncio.sleep(random.random() / 2000)
        writer.write(line.upper())
        await writer.drain()
    writer.close()


async def ask(port, name):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(15):
        writer.write(f"{name} {number}\n".encode())
        say("answer", (await reader.readline()).decode().strip())
    writer.close()
    await writer.wait_closed()


async def numbers(count):
    try:
        for number in range(count):
            yield number
            await asyncio.sleep(0)
    finally:
        say("the generator is closed")


def work(number):
    time.sleep(random.random() / 1000)
    total = 0
    for each in range(2000):
        total = (total * 31 + each) % 1009
    return number, total, threading.current_thread().name.startswith("asyncio")


async def in_threads():
    for result in asyncio.as_completed([asyncio.to_thread(work, number) for number in range(6)]):
        say("thread", await result)


async def impatient():
    for number in range(5):
        try:
            async with asyncio.timeout(0.002):
                await asyncio.sleep(random.random() / 250)
                say("in time", number)
        except TimeoutError:
            say("too late", number)


async def neighbour(which):
    other = loops[(which + 1) % 4]
    for number in range(5):
        future = asyncio.run_coroutine_threadsafe(answer_neighbour(which, number), other)
        say("neighbour", await asyncio.wrap_future(future))


async def answer_neighbour(which, number):
    say("asked by", which, number)
    await asyncio.sleep(random.random() / 1000)
    return number * which


async def main(which):
    loops[which] = asyncio.get_running_loop()
    await asyncio.to_thread(ready.wait)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(ask(port, f"client {number}"))
        group.create_task(in_threads())
        group.create_task(impatient())
        group.create_task(neighbour(which))
    async for number in numbers(10):
        if number == 3:
            break
    server.close()
    # Neighbours may still ask.
    await asyncio.to_thread(ready.wait)


threads = [threading.Thread(target=asyncio.run, args=(main(which),), name=f"loop {which}") for which in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for line in lines:
    print(line)
print("all loops have ended", len(lines) > 300)
