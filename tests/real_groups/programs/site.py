"""A WSGI and an ASGI application that say which process answers."""

import os

hits = 0


def wsgi(environ, start_response):
    """Answer with the worker's process id, and how often it was asked."""
    global hits
    hits += 1
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {hits} {environ['QUERY_STRING']}\n".encode()]


async def asgi(scope, receive, send):
    """Do the same, for ASGI."""
    global hits
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    hits += 1
    text = f"{os.getpid()} {hits} {scope['query_string'].decode()}\n"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text.encode()})
