"""An S3 server on loopback, which ends with the block."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "recordings"
_PATIENCE = 60.0


@contextmanager
def s3_server(*, has_rights: bool = True) -> Iterator[dict[str, str]]:
    """Run a server with an empty bucket; yield the variables with which clients find it.

    Without `has_rights` it knows no keys, and refuses everything.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", str(port)]
    own = os.environ | ({} if has_rights else {"INITIAL_NO_AUTH_ACTION_COUNT": "0"})
    process = subprocess.Popen(command, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + _PATIENCE
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("moto_server does not begin")
            time.sleep(0.1)
        env = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        if has_rights:
            code = f"import s3fs; s3fs.S3FileSystem().mkdir('{BUCKET}')"
            subprocess.run([sys.executable, "-c", code], env=os.environ | env, check=True, timeout=_PATIENCE)
        yield env
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
