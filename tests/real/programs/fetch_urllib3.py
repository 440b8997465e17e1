# mypy: ignore-errors
# ruff: noqa
"""urllib3: one pool for five threads, retries, a timeout, a streamed answer; then urllib.request and http.client."""

import http.client
import json
import sys
import threading
import urllib.request

import urllib3

port = int(sys.argv[1])
site = f"http://127.0.0.1:{port}"
pool = urllib3.PoolManager(maxsize=2, block=True, retries=urllib3.Retry(2, backoff_factor=0.01, status_forcelist=[404]))
found = []


def fetch(number):
    for index in range(10):
        found.append((number, index, pool.request("GET", f"{site}/json").json()["luck"]))


threads = [threading.Thread(target=fetch, args=(number,), name=f"fetcher {number}") for number in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(found)
streamed = pool.request("GET", f"{site}/chunked", preload_content=False)
print([*streamed.stream(16)], len(pool.request("GET", f"{site}/gzip").data))
for call in (
    lambda: pool.request("GET", f"{site}/missing"),
    lambda: pool.request("GET", f"{site}/slow/0.5", timeout=0.05, retries=False),
):
    try:
        call()
    except urllib3.exceptions.HTTPError as error:
        print(type(error).__name__)
with urllib.request.urlopen(f"{site}/redirect") as answer:
    print(answer.status, answer.url == f"{site}/json", json.load(answer))
connection = http.client.HTTPConnection("127.0.0.1", port)
for path in ("/json", "/gzip", "/json"):
    connection.request("GET", path)
    print(len(connection.getresponse().read()) > 10)
connection.close()
print("everything was fetched")
