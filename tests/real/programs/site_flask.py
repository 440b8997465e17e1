# mypy: ignore-errors
# ruff: noqa
"""Flask's threaded development server: sessions, templates, a lock, a queue between requests; the last one ends it."""

import os
import queue
import random
import signal
import sys
import threading
import time

from flask import Flask, g, jsonify, make_response, render_template_string, request, session

app = Flask(__name__)
app.secret_key = os.urandom(16)
lock = threading.Lock()
visits: dict[str, int] = {}
jobs: queue.Queue = queue.Queue()
order = []
local = threading.local()


@app.before_request
def started():
    g.started = time.perf_counter()
    local.served = getattr(local, "served", 0) + 1


@app.after_request
def ended(response):
    order.append(request.path)
    response.headers["X-Took"] = f"{time.perf_counter() - g.started:.6f}"
    return response


@app.get("/page/<int:number>")
def page(number):
    with lock:
        visits[threading.current_thread().name] = visits.get(threading.current_thread().name, 0) + 1
    session["seen"] = session.get("seen", 0) + 1
    time.sleep(random.random() / 500)
    return render_template_string("page {{ number }} {{ luck }}", number=number, luck=random.random())


@app.post("/job")
def job():
    jobs.put((request.get_json()["number"], time.time()))
    return jsonify(waiting=jobs.qsize(), thread=threading.current_thread().name)


@app.get("/job")
def done():
    try:
        number, when = jobs.get(timeout=0.5)
    except queue.Empty:
        return "none", 404
    return jsonify(number=number, waited=time.time() - when)


@app.get("/wrong")
def wrong():
    raise KeyError(request.args.get("key"))


@app.get("/end")
def end():
    response = make_response("ends")
    # Only when it has been written, since threads of this server end with the program; and when the main thread waits for
    # a connection: in Thread.start() CPython turns a KeyboardInterrupt into an error that the server survives.
    interrupt = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    response.call_on_close(interrupt.start)
    return response


app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
print(len(order), "requests", sorted(visits.items())[:3], jobs.qsize(), hash(tuple(order)) & 0xFFFF)
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join(5)
print("the server has ended")
