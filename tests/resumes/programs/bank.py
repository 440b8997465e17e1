"""Four banks that send each other money over pipes and pairs of sockets: `bank.py ROUNDS`; writes what they have in all."""

import os
import random
import socket
import sys

BANKS, START = 4, 1000
ROUNDS = int(sys.argv[1])


def channel(one, other):
    """Return a function for each bank, which makes a pair of functions: to read from, and to write to the other one."""
    if (one + other) % 2:
        ends = socket.socketpair()
        return [(lambda n, end=end: end.recv(n), lambda data, end=end: end.sendall(data)) for end in ends]
    there, back = os.pipe(), os.pipe()
    return [
        (lambda n, fd=reads: os.read(fd, n), lambda data, fd=writes: os.write(fd, data))
        for reads, writes in ((back[0], there[1]), (there[0], back[1]))
    ]


def run(number, links):
    balance, chance = START, random.Random(number)
    waiting = {other: b"" for other in links}

    def line_from(other):
        while b"\n" not in waiting[other]:
            data = links[other][0](7)
            if not data:
                raise EOFError
            waiting[other] += data
        line, _, waiting[other] = waiting[other].partition(b"\n")
        return line

    for turn in range(ROUNDS):
        chosen = chance.choice(list(links))
        amount = chance.randrange(1, 50)
        balance -= amount
        for other in links:
            links[other][1](b"%d\n" % (amount if other == chosen else 0))
        for other in links:
            balance += int(line_from(other))
    return balance, line_from


links = {number: {} for number in range(BANKS)}
for one in range(BANKS):
    for other in range(one):
        links[one][other], links[other][one] = channel(one, other)
children = {}
for number in range(1, BANKS):
    pid = os.fork()
    if not pid:
        balance, _ = run(number, links[number])
        links[number][0][1](b"%d\n" % balance)
        os._exit(number)
    children[pid] = number
open("begun", "w").close()
total, line_from = run(0, links[0])
for number in range(1, BANKS):
    total += int(line_from(number))
for pid, number in children.items():
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == number
with open("ledger", "w") as file:
    file.write(f"{total}\n")
print("total", total)
