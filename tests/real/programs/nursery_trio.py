# mypy: ignore-errors
# ruff: noqa
"""trio: nurseries, channels, cancellation, threads, a server and its clients over sockets, a signal, a process."""

import os
import random
import signal
import time

import trio

lines = []


async def echo(stream):
    async for data in stream:
        await trio.sleep(random.random() / 1000)
        await stream.send_all(data)


async def client(port, number, sender):
    async with sender:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with stream:
            for index in range(10):
                data = f"{number}.{index}".encode()
                await stream.send_all(data)
                assert await stream.receive_some() == data
                await sender.send(data.decode())


async def collect(receiver):
    async for item in receiver:
        lines.append(item)


async def threads():
    async def one(number):
        value = await trio.to_thread.run_sync(lambda: (time.sleep(random.random() / 500), random.random())[1])
        lines.append((number, value))

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(one, number)


async def signals():
    with trio.open_signal_receiver(signal.SIGUSR1) as received:
        os.kill(os.getpid(), signal.SIGUSR1)
        async for number in received:
            lines.append(signal.Signals(number).name)
            break


async def main():
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    with trio.move_on_after(30) as scope:
        async with trio.open_nursery() as server:
            server.start_soon(trio.serve_listeners, echo, listeners)
            sender, receiver = trio.open_memory_channel(3)
            async with trio.open_nursery() as clients:
                clients.start_soon(collect, receiver)
                async with sender:
                    for number in range(5):
                        clients.start_soon(client, port, number, sender.clone())
            server.cancel_scope.cancel()
    with trio.move_on_after(0.01) as late:
        await trio.sleep_forever()
    await threads()
    await signals()
    done = await trio.run_process(["sh", "-c", "echo out; exit 3"], capture_stdout=True, check=False)
    lines.append((done.stdout, done.returncode, scope.cancelled_caught, late.cancelled_caught))
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail, 1)
            nursery.start_soon(fail, 2)
    except* ValueError as group:
        lines.append(str(sorted(map(str, group.exceptions))))


async def fail(number):
    raise ValueError(number)


trio.run(main)
for line in lines:
    print(line)
