# mypy: ignore-errors
# ruff: noqa
"""A crawler of a local site: eight threads, first come first served, a limit of connections, logging from each."""

import logging
import re
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

site = f"http://127.0.0.1:{sys.argv[1]}"
logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(threadName)s %(message)s")
limit = threading.BoundedSemaphore(5)


def fetch(path):
    with limit:
        started = time.perf_counter()
        with urllib.request.urlopen(site + path, timeout=20) as answer:
            text = answer.read().decode()
    logging.info("%s: %d bytes in %.6f s", path, len(text), time.perf_counter() - started)
    return path, re.findall("<title>(.*?)</title>", text), re.findall("href=[\"'](.*?)[\"']", text)


seen, titles, broken, order = {"/page/0"}, {}, [], []
with ThreadPoolExecutor(8, thread_name_prefix="crawler") as pool:
    waiting = {pool.submit(fetch, "/page/0"): "/page/0"}
    while waiting:
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            asked = waiting.pop(future)
            try:
                path, (title,), links = future.result()
            except urllib.error.HTTPError as error:
                broken.append((asked, error.code))
                continue
            titles[path] = title
            order.append(path)
            for link in links:
                if link not in seen:
                    seen.add(link)
                    waiting[pool.submit(fetch, link)] = link
print(order)
print(len(titles), "pages,", "broken:", broken)
