# mypy: ignore-errors
# ruff: noqa
"""aiohttp's server: websockets that echo and speak to all, HTTP beside, a thread for work; the last request ends it."""

import asyncio
import random
import sys
import time

from aiohttp import WSMsgType, web

sockets = set()
counts = {"text": 0, "binary": 0, "hello": 0}
ended = asyncio.Event()


async def talk(request):
    socket = web.WebSocketResponse(heartbeat=5, max_msg_size=0)
    await socket.prepare(request)
    sockets.add(socket)
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            counts["text"] += 1
            if message.data.startswith("all:"):
                for other in [*sockets]:
                    if not other.closed:
                        try:
                            await other.send_str(message.data)
                        except ConnectionResetError:
                            pass
            else:
                await socket.send_str(message.data)
        elif message.type is WSMsgType.BINARY:
            counts["binary"] += 1
            await socket.send_bytes(message.data)
    sockets.discard(socket)
    return socket


async def hello(request):
    counts["hello"] += 1
    await asyncio.sleep(random.random() / 100)
    took = await asyncio.to_thread(lambda: (time.sleep(0.001), random.random())[1])
    return web.json_response({"hello": took, "query": dict(request.query)})


async def end(request):
    asyncio.get_running_loop().call_later(0.05, ended.set)
    return web.Response(text="ends")


async def main():
    app = web.Application()
    app.add_routes([web.get("/talk", talk), web.get("/hello", hello), web.get("/end", end)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(sys.argv[1])).start()
    await ended.wait()
    await runner.cleanup()


asyncio.run(main())
print(counts, "the server has ended")
