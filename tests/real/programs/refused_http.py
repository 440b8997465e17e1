# mypy: ignore-errors
# ruff: noqa
"""http.client and urllib against a loopback port on which nothing listens."""

import http.client
import socket
import urllib.error
import urllib.request

probe = socket.socket()
probe.bind(("127.0.0.1", 0))
port = probe.getsockname()[1]
probe.close()
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
try:
    connection.request("GET", "/")
except OSError as error:
    print(type(error).__name__, error, port)
try:
    urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)
except urllib.error.URLError as error:
    print(error.reason, socket.getaddrinfo("127.0.0.1", port, type=socket.SOCK_STREAM))
