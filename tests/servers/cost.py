"""The cost of `replaydbg always on` for a threaded Flask service: CPU time and bytes a request, paired with plain runs.

`python -m tests.servers.cost [PAIRS]` prints medians; the libraries are those of `tox -e servers`. The CPU time is that
of the server from its start to its end, the launcher's work included, minus that of a run without any request.
"""

from __future__ import annotations

import http.client
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.servers.test_servers import ADDRESS

REQUESTS = 1000
CLIENTS = 4
PATHS = {"/orders/": "reads a database and answers", "/reports/": "computes before it answers"}

APPLICATION = """
import json, sqlite3
from flask import Flask, request
from replaydbg.web import WSGIMiddleware

app = Flask(__name__)

@app.get("/orders/<int:number>")
def order(number):
    with sqlite3.connect("orders.sqlite") as database:
        rows = database.execute("SELECT name, price FROM items WHERE number % 7 = ?", (number % 7,)).fetchall()
    return {"number": number, "items": [{"name": name, "price": price} for name, price in rows],
            "total": sum(price for _, price in rows), "agent": request.headers.get("User-Agent")}

@app.get("/reports/<int:number>")
def report(number):
    rows = [{"number": each, "name": f"item {each}", "price": each * 37 % 101} for each in range(6000)]
    rows.sort(key=lambda row: (row["price"], row["name"]))
    return {"rows": len(json.dumps(rows)), "total": sum(row["price"] for row in rows)}

app.wsgi_app = WSGIMiddleware(app.wsgi_app)
"""
WORDS = ["-m", "gunicorn", "--bind=127.0.0.1:0", "--worker-class=gthread", "--threads=4", "application:app"]


def environment(folder: Path) -> Path:
    """Return the interpreter of an environment with the packages of this one."""
    venv.create(folder / "venv", symlinks=True, with_pip=False)
    packages = next((folder / "venv").glob("lib/python*/site-packages"))
    (packages / "all.pth").write_text("\n".join(path for path in sys.path if path))
    return folder / "venv/bin/python"


def served(folder: Path, python: Path, env: dict[str, str], path: str, requests: int) -> float:
    """Return the CPU time of the server in seconds."""
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen([python, *WORDS], cwd=folder, env=env, stdout=output, stderr=output)
    found = wait_until(lambda: ADDRESS.search((folder / "output").read_text()))
    assert found is not None
    port = int(found[1].rpartition(":")[2])

    def ask(count: int) -> None:
        for number in range(count):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", f"{path}{number}")
            assert connection.getresponse().read()
            connection.close()

    ask(1)
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(ask, [requests // CLIENTS] * CLIENTS))
    process.send_signal(signal.SIGTERM)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    return usage.ru_utime + usage.ru_stime


def main(pairs: int = 7) -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "application.py").write_text(APPLICATION)
        subprocess.run([sys.executable, "-c", DATABASE], cwd=folder, check=True)
        python = environment(folder)
        store = folder / "store"
        env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(store)}
        subprocess.run([sys.executable, "-m", "replaydbg", "always", "on", folder / "venv"], env=env, check=True)
        plain = env | {"REPLAYDBG_ALWAYS": "off"}
        names = ("flask", "gunicorn")
        versions = [f"{each} {version(each)}" for each in names]
        print(", ".join([f"python {sys.version.split()[0]}", *versions]))
        for path, what in PATHS.items():
            rows: list[tuple[float, ...]] = []
            sizes: list[float] = []
            for number in range(pairs + 1):
                few = [served(folder, python, each, path, 0) for each in (plain, env)]
                before = size(store)
                much = [served(folder, python, each, path, REQUESTS) for each in (plain, env)]
                if number:  # the first pair fills caches
                    rows.append((*few, *much))
                    sizes.append(size(store) - before)
            print(f"{path} {what}:")
            report(rows, sizes)


DATABASE = """import sqlite3
with sqlite3.connect("orders.sqlite") as database:
    database.execute("CREATE TABLE items (number INTEGER, name TEXT, price INTEGER)")
    database.executemany("INSERT INTO items VALUES (?, ?, ?)", [(n, f"item {n}", n * 3) for n in range(140)])
"""


def size(store: Path) -> int:
    """Return how many bytes a store takes, each file once."""
    return sum({(found := path.stat()).st_ino: found.st_size for path in store.rglob("*") if path.is_file()}.values())


def report(rows: list[tuple[float, ...]], sizes: list[float]) -> None:
    """Print the medians."""
    plain = statistics.median((each[2] - each[0]) for each in rows) / REQUESTS * 1e6
    ours = statistics.median((each[3] - each[1]) for each in rows) / REQUESTS * 1e6
    ratio = statistics.median((each[3] - each[1]) / (each[2] - each[0]) for each in rows)
    whole = statistics.median(each[3] / each[2] for each in rows)
    start = statistics.median(each[1] - each[0] for each in rows)
    print(f"  CPU a request: {plain:,.0f} us plain, {ours:,.0f} us recorded: {ratio - 1:+.1%} ({len(rows)} pairs)")
    print(f"  start and end: {start:+.2f} s; a run of {REQUESTS:,} requests: {whole - 1:+.1%}")
    print(f"  bytes a request: {statistics.median(sizes) / REQUESTS:,.0f}, those of the imports included")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
