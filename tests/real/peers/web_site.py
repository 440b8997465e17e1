"""A small web site: linked pages, JSON, an echo, redirects, cookies, compressed, chunked, slow and failing answers."""

import gzip
import json
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGES = 60


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The answer leaves in one piece: with two, Nagle's algorithm and delayed acknowledgements cost 44 ms.
    wbufsize = -1

    def do_GET(self) -> None:
        kind, _, rest = self.path.lstrip("/").partition("/")
        match kind:
            case "" | "page":
                time.sleep(random.random() / 200)
                self._answer(_page(int(rest or 0)), "text/html")
            case "json":
                self._answer(json.dumps({"luck": random.random(), "agent": self.headers["User-Agent"]}).encode())
            case "gzip":
                self._answer(gzip.compress(b"compressed " * 500), encoding="gzip")
            case "redirect":
                self._answer(b"", status=302, location="/json")
            case "cookie":
                self._answer(b"ok", cookie=f"luck={random.randrange(1000)}")
            case "slow":
                time.sleep(float(rest))
                self._answer(b"slow")
            case "chunked":
                self._answer_chunked()
            case _:
                self._answer(b"there is no such page", status=404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(json.dumps({"got": len(body), "type": self.headers["Content-Type"]}).encode())

    def _answer(
        self,
        body: bytes,
        kind: str = "application/json",
        *,
        status: int = 200,
        encoding: str | None = None,
        location: str | None = None,
        cookie: str | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in (("Content-Encoding", encoding), ("Location", location), ("Set-Cookie", cookie)):
            if value is not None:
                self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer_chunked(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(5):
            self.wfile.write(b"8\r\nchunk %02d\r\n" % number)
            self.wfile.flush()
            time.sleep(0.002)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: only the program speaks."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Crawlers come with many connections at once.
    request_queue_size = 128


def _page(number: int) -> bytes:
    links = sorted({(number * 2 + 1) % PAGES, (number * 3 + 1) % PAGES, (number + 7) % PAGES})
    anchors = " ".join(f'<a href="/page/{link}">{link}</a>' for link in links)
    return f"<title>page {number}</title> {random.random():.6f} {anchors} <a href='/missing'>x</a>".encode()


def main(port: int) -> int:
    """Serves until stdin is closed."""
    server = _Server(("127.0.0.1", port), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
