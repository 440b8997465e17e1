# mypy: ignore-errors
# ruff: noqa
"""requests: a session with cookies, redirects, an upload, a timeout, streaming; then the same from four threads."""

import sys
from concurrent.futures import ThreadPoolExecutor

import requests

site = f"http://127.0.0.1:{sys.argv[1]}"
with requests.Session() as session:
    print(session.get(f"{site}/cookie").text, session.cookies.get_dict())
    print(session.get(f"{site}/redirect").json(), len(session.get(f"{site}/gzip").text))
    print(session.post(f"{site}/upload", files={"file": ("a.txt", b"x" * 100_000)}).json()["got"])
    print(session.post(f"{site}/upload", json={"one": [1, 2]}).json())
    print(b"".join(session.get(f"{site}/chunked", stream=True).iter_content(16)))
    missing = session.get(f"{site}/missing")
    print(missing.status_code, missing.elapsed.total_seconds() < 5, dict(missing.headers))
    try:
        session.get(f"{site}/slow/0.5", timeout=0.05)
    except requests.Timeout as error:
        print(type(error).__name__)


def fetch(number):
    with requests.Session() as own:
        return [own.get(f"{site}/json").json()["luck"] for _ in range(5)]


with ThreadPoolExecutor(4) as pool:
    for number, lucks in enumerate(pool.map(fetch, range(8))):
        print(number, lucks)
try:
    requests.get("http://127.0.0.1:1/", timeout=1)
except requests.ConnectionError as error:
    print(type(error).__name__, str(error)[-60:])
print("everything was fetched")
