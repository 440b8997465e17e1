# mypy: ignore-errors
# ruff: noqa
"""uvicorn with an ASGI application: websockets that echo and speak to all, HTTP beside; the last request ends it."""

import asyncio
import random
import sys
import time

import uvicorn

senders = {}
counts = {"text": 0, "binary": 0, "hello": 0}


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
    elif scope["type"] == "websocket":
        await talk(receive, send)
    else:
        await answer(scope, send)


async def talk(receive, send):
    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept"})
    key = len(senders)
    senders[key] = send
    while (message := await receive())["type"] == "websocket.receive":
        text = message.get("text")
        counts["binary" if text is None else "text"] += 1
        if text is None:
            await send({"type": "websocket.send", "bytes": message["bytes"]})
        elif text.startswith("all:"):
            for other in [each for each in senders.values() if each is not None]:
                try:
                    await other({"type": "websocket.send", "text": text})
                except Exception as error:
                    print("one has left:", type(error).__name__)
        else:
            await send({"type": "websocket.send", "text": text})
    senders[key] = None


async def answer(scope, send):
    counts["hello"] += 1
    if scope["path"] == "/end":
        asyncio.get_running_loop().call_later(0.05, setattr, server, "should_exit", True)
    took = await asyncio.to_thread(lambda: (time.sleep(0.001), random.random())[1])
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": f"hello {took}".encode()})


server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=int(sys.argv[1]), ws="websockets-sansio"))
server.run()
print(counts, "the server has ended")
