"""Threads open and close descriptors at once; when they have ended, reads from /proc which ones are left."""

import os
import random
import socket
import sys
import threading

seed = int(sys.argv[1])
kept: list[int] = []


def look() -> None:
    """Read what the kernel has; the recording contains the answers."""
    for number in sorted(map(int, os.listdir("/proc/self/fd"))):
        try:
            os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue  # it was that of the list itself
        with open(f"/proc/self/fdinfo/{number}", "rb", buffering=0) as info:
            info.read(200)


def work(own: random.Random) -> None:
    mine: list[int] = []
    for _ in range(25):
        action = own.randrange(6)
        if action == 0:
            mine.append(os.open(own.choice("ab"), os.O_RDWR | os.O_CREAT, 0o600))
        elif action == 1:
            mine.extend(os.pipe())
        elif action == 2 and mine:
            mine.append(os.dup(own.choice(mine)))
        elif action == 3:
            with socket.create_connection(listening.getsockname()) as client:
                client.sendall(b"x")
        elif action == 4:
            with open("c", "wb", buffering=0) as file:
                file.write(b"12")
        elif mine:
            os.close(mine.pop(own.randrange(len(mine))))
    kept.extend(mine[::2])
    for each in mine[1::2]:
        os.close(each)


def serve() -> None:
    while True:
        accepted, _ = listening.accept()
        with accepted:
            if accepted.recv(1) == b"q":
                return


listening = socket.create_server(("127.0.0.1", 0))
server = threading.Thread(target=serve)
server.start()
for phase in range(4):
    threads = [threading.Thread(target=work, args=(random.Random(seed * 100 + phase * 10 + each),)) for each in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    while len(kept) > 10:
        os.close(kept.pop())
with socket.create_connection(listening.getsockname()) as last:
    last.sendall(b"q")
server.join()
look()
