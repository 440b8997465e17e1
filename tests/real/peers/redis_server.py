"""Debian's redis-server on a loopback port, its files in a temporary directory."""

import socket
import subprocess
import sys
import tempfile
import time

_PATIENCE_SECONDS = 30.0


def main(port: int) -> int:
    """Serves until stdin is closed."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-redis-") as directory:
        options = {"port": str(port), "bind": "127.0.0.1", "dir": directory, "save": "", "daemonize": "no"}
        arguments = [text for name, value in options.items() for text in (f"--{name}", value)]
        server = subprocess.Popen(["redis-server", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            _wait_until_listening(port)
            print("ready", flush=True)
            sys.stdin.read()
        finally:
            server.terminate()
            server.wait()
    return 0


def _wait_until_listening(port: int) -> None:
    limit = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
