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

class Sized(Body):
    def __len__(self):
        return 1

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
    if path.startswith("/silent"):
        return silent() if path == "/silently" else [b"no status"]
    status = {"/broken": "500 Broken", "/strange": Strange()}.get(path, "200 OK")
    write = start_response(status, [("A", "b")])
    write(b"written")
    return {"/stream": Body([b"a", b"b"]), "/failing": failing(), "/close": Body([b"a"], OSError("in close")),
            "/file": FileWrapper(), "/sized": Sized([b"a"])}.get(path, [b"whole"])

def late(start_response):
    start_response("503 Later", [])
    yield b"late"

def silent():
    yield b"no status"

class Strange:
    def __str__(self):
        raise RuntimeError("no text")

def request(path, reads=10, method="GET"):
    environ = {"REQUEST_METHOD": method, "SCRIPT_NAME": "", "PATH_INFO": path, "wsgi.file_wrapper": FileWrapper}
    seen = []
    def start_response(status, headers, exc_info=None):
        seen.append((type(status) if path == "/strange" else status, headers))
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
    print(len(body) if hasattr(body, "__len__") else "no length")

served = application if "plain" in sys.argv else WSGIMiddleware(application)
for path in ("/", "/stream", "/late", "/broken", "/raises", "/exits", "/failing", "/close", "/file"):
    request(path)
for path in ("/sized", "/strange", "/silent", "/silently"):
    request(path)
request("/stream", reads=1)
request("/silently", reads=0)
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
        if path == "/silent":
            return
        await send({"type": "websocket.accept"})
        print(await receive())
        if path == "/lost":
            raise ConnectionError("lost")
        await send({"type": "websocket.close", "code": 1000})
        return
    if path == "/raises":
        raise ValueError("in the call")
    if path == "/gone":
        print(await receive())
    if path in ("/gone", "/silent"):
        return
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
        return {"type": f"{kind}.disconnect" if path == "/gone" else f"{kind}.first"}
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
    for path in ("/", "/broken", "/raises", "/failing", "/waits", "/silent", "/gone"):
        await request(path)
    for path in ("/talk", "/lost", "/silent"):
        await request(path, "websocket")

served = application if "plain" in sys.argv else ASGIMiddleware(application)
asyncio.run(main())
"""
"""The same for ASGI."""
