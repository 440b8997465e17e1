# mypy: ignore-errors
# ruff: noqa
"""Celery: a worker with four threads and a client in one process; the broker is a folder or memory, as asked."""

import logging
import os
import random
import sys
import threading
import time

from celery import Celery, chain, chord, group
from celery.contrib.testing.worker import start_worker

app = Celery("tasks")
if sys.argv[1] == "filesystem":
    os.mkdir("queue")
    os.mkdir("control")
    app.conf.broker_url = "filesystem://"
    app.conf.broker_transport_options = {
        "data_folder_in": "queue",
        "data_folder_out": "queue",
        "control_folder": "control",
        "polling_interval": 0.01,
    }
else:
    app.conf.broker_url = "memory://"
    app.conf.broker_transport_options = {"polling_interval": 0.01}
app.conf.result_backend = "cache+memory://"
app.conf.update(worker_hijack_root_logger=False, result_chord_retry_interval=0.05, worker_timer_precision=0.01)
logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(threadName)s %(message)s")


@app.task
def add(one, other):
    time.sleep(random.random() / 100)
    return one + other


@app.task
def total(numbers):
    return sum(numbers), threading.current_thread().name


@app.task(bind=True, max_retries=3, default_retry_delay=0.01)
def shaky(self, number):
    if self.request.retries < 2:
        raise self.retry(exc=ValueError(number))
    return number, self.request.retries


@app.task
def wrong():
    raise KeyError("wrong")


def use(name):
    print(name, [each.get(timeout=30) for each in added], failed.get(timeout=30, propagate=False))
    if name == "memory":
        print(chain(add.s(1, 2), add.s(10))().get(timeout=30), group(add.s(n, 1) for n in range(5))().get(timeout=30))
        print(chord(add.s(n, n) for n in range(5))(total.s()).get(timeout=30)[0], shaky.delay(7).get(timeout=30))


# Before the worker starts: a folder loses what is written while it is read.
added = [add.delay(number, number) for number in range(20)]
failed = wrong.delay()
with start_worker(app, pool="threads", concurrency=4, perform_ping_check=False, shutdown_timeout=30):
    use(sys.argv[1])
print("the worker has ended")
