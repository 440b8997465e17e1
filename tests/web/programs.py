"""Web applications without a server: each calls its application as a server does, and prints what that gets back."""

WSGI = """import sys
from replaydbg.web import WSGIMiddleware

class Body:
    def __init__(self, pieces, at_close=None):
        self.pieces, self.at_close = iter(pieces), at_close
    def __iter__(self):
        return self.pieces
    def close(self):
        print("closed")
        if self.at_close:
            raise self.at_close

class FileWrapper:
    pass

def failing():
    yield b"one"
    raise KeyError("in the body")

def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/raises":
        raise ValueError("in the call")
    if path == "/exits":
        raise SystemExit(3)
    if path == "/late":
        return late(start_response)
    write = start_response("500 Broken" if path == "/broken" else "200 OK", [("A", "b")])
    write(b"written")
    return {"/stream": Body([b"a", b"b"]), "/failing": failing(), "/close": Body([b"a"], OSError("in close")),
            "/file": FileWrapper()}.get(path, [b"whole"])

def late(start_response):
    start_response("503 Later", [])
    yield b"late"

def request(path, reads=10, method="GET"):
    environ = {"REQUEST_METHOD": method, "SCRIPT_NAME": "", "PATH_INFO": path, "wsgi.file_wrapper": FileWrapper}
    seen = []
    def start_response(status, headers, exc_info=None):
        seen.append((status, headers))
        return seen.append
    body = None
    try:
        body = served(environ, start_response)
        if not isinstance(body, FileWrapper):
            pieces = iter(body)
            for _ in range(reads):
                seen.append(next(pieces))
    except StopIteration:
        pass
    except BaseException as error:
        print(path, "raised", repr(error))
    finally:
        try:
            if hasattr(body, "close"):
                body.close()
        except OSError as error:
            print(path, "raised", repr(error))
    print(path, seen, type(body).__name__ if isinstance(body, (list, FileWrapper)) else "")

served = application if "plain" in sys.argv else WSGIMiddleware(application)
for path in ("/", "/stream", "/late", "/broken", "/raises", "/exits", "/failing", "/close", "/file"):
    request(path)
request("/stream", reads=1)
"""
"""Prints the same with `plain`, without the middleware."""

ASGI = """import asyncio, sys
from replaydbg.web import ASGIMiddleware

async def application(scope, receive, send):
    kind, path = scope["type"], scope.get("path")
    if kind == "lifespan":
        print("lifespan", await receive())
        await send({"type": "lifespan.startup.complete"})
        return
    if kind == "websocket":
        await send({"type": "websocket.accept"})
        print(await receive())
        if path == "/lost":
            raise ConnectionError("lost")
        await send({"type": "websocket.close", "code": 1000})
        return
    if path == "/raises":
        raise ValueError("in the call")
    await send({"type": "http.response.start", "status": 500 if path == "/broken" else 200, "headers": []})
    await send({"type": "http.response.body", "body": b"a", "more_body": True})
    if path == "/waits":
        await asyncio.Event().wait()
    if path == "/failing":
        raise KeyError("in the body")
    await send({"type": "http.response.body", "body": b"b"})

async def request(path, kind="http"):
    seen = []
    async def receive():
        return {"type": f"{kind}.first"}
    async def send(message):
        seen.append(message)
    scope = {"type": kind} if kind == "lifespan" else {"type": kind, "path": path}
    if kind == "http":
        scope["method"] = "GET"
    try:
        task = asyncio.ensure_future(served(scope, receive, send))
        if path == "/waits":
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
        print(path, "returned", await task)
    except BaseException as error:
        print(path, "raised", repr(error))
    print(path, seen)

async def main():
    await request("", "lifespan")
    for path in ("/", "/broken", "/raises", "/failing", "/waits"):
        await request(path)
    for path in ("/talk", "/lost"):
        await request(path, "websocket")

served = application if "plain" in sys.argv else ASGIMiddleware(application)
asyncio.run(main())
"""
"""The same for ASGI."""
