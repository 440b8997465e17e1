"""2,000 requests to a threading HTTP server in the same process, a connection and a thread each."""

import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REQUESTS = 2_000


class _Handler(BaseHTTPRequestHandler):
    # The answer leaves in one piece, or Nagle's algorithm and delayed acknowledgements are what is measured.
    wbufsize = -1

    def do_GET(self) -> None:
        """Answers with the path."""
        body = self.path.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def _ask(port: int, number: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", f"/item/{number}")
    size = len(connection.getresponse().read())
    connection.close()
    return size


def main() -> None:
    """Serves in a thread and asks from the main one."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    started = time.perf_counter()
    total = sum(_ask(server.server_port, number) for number in range(REQUESTS))
    took = time.perf_counter() - started
    server.shutdown()
    thread.join()
    server.server_close()
    print(total)
    print(f"{1e6 * took / REQUESTS:.2f} us a message")


main()
