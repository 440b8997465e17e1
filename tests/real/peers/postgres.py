"""Debian's PostgreSQL on a loopback port, its cluster in a temporary directory; never as root, which it refuses."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

_PATIENCE_SECONDS = 60.0
# Debian keeps the programs of each version out of PATH.
_DEBIAN = Path("/usr/lib/postgresql")
_SUBSTITUTE = "nobody"


def main(port: int) -> int:
    """Serves until stdin is closed."""
    programs = directory_of_programs()
    assert programs is not None, "PostgreSQL is not installed"
    with tempfile.TemporaryDirectory(prefix="replaydbg-postgres-") as directory:
        user = _SUBSTITUTE if os.getuid() == 0 else None
        if user is not None:
            os.chown(directory, pwd.getpwnam(user).pw_uid, -1)
        cluster = Path(directory, "cluster")
        make: list[str | Path] = [
            programs / "initdb",
            "-D",
            cluster,
            "-U",
            "tester",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        ]
        _start(make, directory, user).wait()
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": directory,
            "fsync": "off",
            "max_connections": "20",
        }
        options = [text for name, value in settings.items() for text in ("-c", f"{name}={value}")]
        server = _start([programs / "postgres", "-D", cluster, "-p", str(port), *options], directory, user)
        try:
            _wait_until_ready(programs, port)
            print("ready", flush=True)
            sys.stdin.read()
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
    return 0


def directory_of_programs() -> Path | None:
    """Where `initdb` and `postgres` lie; None: nowhere."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    versions = sorted(_DEBIAN.glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


def _start(argv: Sequence[str | Path], directory: str, user: str | None) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(argv, cwd=directory, stdin=quiet, stdout=quiet, stderr=quiet, user=user)


def _wait_until_ready(programs: Path, port: int) -> None:
    limit = time.monotonic() + _PATIENCE_SECONDS
    ask: list[str | Path] = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
    while subprocess.run(ask, check=False).returncode != 0:
        assert time.monotonic() < limit, "PostgreSQL does not answer"
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
