"""Tasks of Celery, with queues in files."""

import os

from celery import Celery

app = Celery("tasks", broker="filesystem://", backend=f"file://{os.getcwd()}/results")
for name in ("queue", "control", "results"):
    os.makedirs(name, exist_ok=True)
app.conf.broker_transport_options = {
    "data_folder_in": "queue",
    "data_folder_out": "queue",
    "control_folder": "control",
}


@app.task
def add(first, second):
    """Return the sum."""
    return first + second
