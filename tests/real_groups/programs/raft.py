"""Three processes elect a leader and agree on a log (Raft: Ongaro and Ousterhout, In search of an understandable
consensus algorithm, 2014), over datagrams. Each prints the log that it has committed."""

import json
import os
import random
import socket
import sys
import time
from multiprocessing import get_context

WANTED = 8
HEARTBEAT = 0.02


class Node:
    """One member."""

    def __init__(self, number, own, addresses):
        self.number, self.own, self.addresses = number, own, addresses
        self.term, self.voted, self.log, self.committed = 0, None, [], 0
        self.state, self.votes, self.matched = "follower", set(), {}
        self.random = random.Random(os.urandom(8))
        self.wait()

    def wait(self):
        """Expect a heartbeat within a random time."""
        self.until = time.monotonic() + self.random.uniform(0.1, 0.3)

    def send(self, to, **message):
        """Send a message of this term."""
        message |= {"from": self.number, "term": self.term}
        self.own.sendto(json.dumps(message).encode(), self.addresses[to])

    def others(self):
        """Return the numbers of the others."""
        return [each for each in range(len(self.addresses)) if each != self.number]

    def stand(self):
        """Become a candidate."""
        self.term, self.state, self.voted, self.votes = self.term + 1, "candidate", self.number, {self.number}
        self.wait()
        last = self.log[-1][0] if self.log else 0
        for each in self.others():
            self.send(each, kind="vote", last=last, length=len(self.log))

    def lead(self):
        """Send what each follower lacks."""
        for each in self.others():
            at = self.matched.get(each, 0)
            before = self.log[at - 1][0] if at else 0
            self.send(each, kind="append", at=at, before=before, entries=self.log[at : at + 2], done=self.committed)

    def hear(self, message):
        """Handle one message."""
        sender = message["from"]
        if message["term"] > self.term:
            self.term, self.state, self.voted = message["term"], "follower", None
        if message["kind"] == "vote":
            mine = (self.log[-1][0] if self.log else 0, len(self.log))
            grants = message["term"] == self.term and self.voted in (None, sender)
            grants = grants and (message["last"], message["length"]) >= mine
            if grants:
                self.voted = sender
                self.wait()
            self.send(sender, kind="voted", grants=grants)
        elif message["kind"] == "voted" and self.state == "candidate" and message["term"] == self.term:
            if message["grants"]:
                self.votes.add(sender)
            if len(self.votes) > len(self.addresses) // 2:
                self.state, self.matched = "leader", {}
                self.log.append([self.term, f"led by {self.number}"])
        elif message["kind"] == "append" and message["term"] == self.term:
            self.state = "follower"
            self.wait()
            at = message["at"]
            fits = len(self.log) >= at and (at == 0 or self.log[at - 1][0] == message["before"])
            if fits:
                self.log[at : at + len(message["entries"])] = message["entries"]
                self.committed = max(self.committed, min(message["done"], len(self.log)))
            self.send(sender, kind="appended", has=at + len(message["entries"]) if fits else max(0, at - 1))
        elif message["kind"] == "appended" and self.state == "leader" and message["term"] == self.term:
            self.matched[sender] = message["has"]
            agreed = sorted([len(self.log), *(self.matched.get(each, 0) for each in self.others())])
            place = agreed[len(agreed) // 2]
            if place > self.committed and self.log[place - 1][0] == self.term:
                self.committed = place

    def run(self, end):
        """Take part until the log is long enough, and a moment longer: the others have to hear of it."""
        finished = None
        while finished is None or time.monotonic() < finished:
            now = time.monotonic()
            if self.state == "leader":
                if len(self.log) < WANTED and self.random.random() < 0.5:
                    self.log.append([self.term, f"entry {len(self.log)}"])
                self.lead()
            elif now > self.until:
                self.stand()
            self.own.settimeout(HEARTBEAT)
            try:
                while True:
                    self.hear(json.loads(self.own.recv(1 << 16)))
                    if time.monotonic() - now > HEARTBEAT:
                        break
            except TimeoutError:
                pass
            if finished is None and self.committed >= WANTED:
                finished = time.monotonic() + 0.5
            if time.monotonic() > end:
                sys.exit("no agreement")
        return self.log[:WANTED]


def member(number, own, addresses, results):
    """Run one node."""
    log = Node(number, own, addresses).run(time.monotonic() + 30)
    print(f"node {number}: {log}", flush=True)
    results.put(log)


if __name__ == "__main__":
    context = get_context("fork")
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    addresses = [each.getsockname() for each in sockets]
    results = context.Queue()
    members = [context.Process(target=member, args=(n, sockets[n], addresses, results)) for n in range(3)]
    for each in members:
        each.start()
    logs = [results.get(timeout=40) for _ in members]
    for each in members:
        each.join()
    print("agreed" if logs.count(logs[0]) == 3 else f"DIFFERENT {logs}")
