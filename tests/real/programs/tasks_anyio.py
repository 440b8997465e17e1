# mypy: ignore-errors
# ruff: noqa
"""anyio on asyncio and on trio: task groups, streams, a server over sockets, threads, a portal, limits, a process."""

import random
import time

import anyio
from anyio import from_thread, to_thread
from anyio.abc import TaskStatus


async def serve(*, task_status: TaskStatus):
    async def handle(stream):
        async with stream:
            async for data in stream:
                await stream.send(data[::-1])

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    task_status.started(listener.extra(anyio.abc.SocketAttribute.local_port))
    await listener.serve(handle)


async def ask(port, number, sender):
    async with sender, await anyio.connect_tcp("127.0.0.1", port) as stream:
        for index in range(5):
            await stream.send(f"{number} {index}".encode())
            await sender.send((await stream.receive()).decode())


def in_thread(number, limiter):
    time.sleep(random.random() / 500)
    return number, from_thread.run(double, number), from_thread.run_sync(random.random)


async def double(number):
    await anyio.sleep(random.random() / 1000)
    return number * 2


async def main(backend):
    lines = []
    async with anyio.create_task_group() as group:
        port = await group.start(serve)
        sender, receiver = anyio.create_memory_object_stream(2)
        async with anyio.create_task_group() as askers:
            for number in range(4):
                askers.start_soon(ask, port, number, sender.clone())
            sender.close()
            async for item in receiver:
                lines.append(item)
        group.cancel_scope.cancel()
    limiter = anyio.CapacityLimiter(3)

    async def one(number):
        lines.append(await to_thread.run_sync(in_thread, number, limiter, limiter=limiter))

    async with anyio.create_task_group() as group:
        for number in range(9):
            group.start_soon(one, number)
    with anyio.move_on_after(0.01) as scope:
        await anyio.sleep(5)
    done = await anyio.run_process(["sh", "-c", "echo out"])
    print(backend, lines, scope.cancelled_caught, done.stdout)


anyio.run(main, "asyncio", backend="asyncio")
anyio.run(main, "trio", backend="trio")
with from_thread.start_blocking_portal() as portal:
    print(portal.call(double, 21), portal.start_task_soon(double, 4).result())
