# mypy: ignore-errors
# ruff: noqa
"""Flask's threaded server and the six threads that ask it, in one process: 240 requests."""

import http.client
import json
import logging
import queue
import random
import sys
import threading

from flask import Flask, jsonify, render_template_string, request
from werkzeug.serving import make_server

app = Flask(__name__)
lock = threading.Lock()
jobs: queue.Queue = queue.Queue(5)
order, totals = [], {}
logging.getLogger("werkzeug").setLevel(logging.ERROR)


@app.get("/page/<int:number>")
def page(number):
    with lock:
        totals[number % 7] = totals.get(number % 7, 0) + random.randrange(10)
    order.append((threading.current_thread().name.partition(" ")[0], number))
    return render_template_string("{% for n in range(5) %}{{ n * number }} {% endfor %}", number=number)


@app.post("/job")
def job():
    try:
        jobs.put(request.get_json()["number"], timeout=0.01)
    except queue.Full:
        return jsonify(full=True), 503
    return jsonify(waiting=jobs.qsize())


@app.get("/job")
def done():
    try:
        return jsonify(number=jobs.get_nowait())
    except queue.Empty:
        return jsonify(number=None)


def ask(method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def client(name):
    for number in range(40):
        kind = random.choice(("page", "put", "get"))
        if kind == "page":
            answer = ask("GET", f"/page/{number}")
        elif kind == "put":
            answer = ask("POST", "/job", json.dumps({"number": number}))
        else:
            answer = ask("GET", "/job")
        order.append((name, number, kind, *answer))


server = make_server("127.0.0.1", 0, app, threaded=True)
port = server.server_port
serving = threading.Thread(target=server.serve_forever)
serving.start()
clients = [threading.Thread(target=client, args=(f"client {number}",)) for number in range(6)]
for thread in clients:
    thread.start()
for thread in clients:
    thread.join()
server.shutdown()
serving.join()
for each in order:
    print(each)
print(sorted(totals.items()), jobs.qsize())
print("all were answered")
