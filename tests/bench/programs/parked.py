"""Messages to threads that are each blocked in a recv of their own and answer; how many threads, argv says."""

import random
import resource
import socket
import sys
import threading
import time

MESSAGES = 40_000


def _answer(own: socket.socket) -> None:
    while message := own.recv(64):
        own.sendall(message)


def main(count: int) -> None:
    """Sends to one after the other in a random order and waits for each answer."""
    # A thousand stacks of the usual 8 MB are more address space than some machines give.
    threading.stack_size(256 * 1024)
    # Two descriptors each, of which a shell may give no more than 1024.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    pairs = [socket.socketpair() for _ in range(count)]
    threads = [threading.Thread(target=_answer, args=(theirs,)) for _, theirs in pairs]
    for thread in threads:
        thread.start()
    chosen = random.Random(1)
    started = time.perf_counter()
    total = 0
    for _ in range(MESSAGES):
        ours = pairs[chosen.randrange(count)][0]
        ours.sendall(b"a message")
        total += len(ours.recv(64))
    took = time.perf_counter() - started
    for ours, _ in pairs:
        ours.close()
    for thread in threads:
        thread.join()
    print(total)
    print(f"{1e6 * took / MESSAGES:.2f} us a message")


main(int(sys.argv[1]))
