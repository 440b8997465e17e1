import sys
import time


class Request:
    def __init__(self, number):
        self.number = number


class Sessions:
    def __init__(self):
        self.seen = {}

    def handle(self, number):
        request = Request(number)
        self.seen[number] = request


class Application:
    def __init__(self):
        self.sessions = Sessions()
        self.counters = {"requests": 0}


application = Application()
seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0
for number in range(240):
    application.sessions.handle(number)
    application.counters["requests"] += 1
    time.sleep(seconds / 240)
