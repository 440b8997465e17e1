"""A small tree of processes that work for each other until a file `stop` appears.

A forked process that answers through pipes and forks another one, two pool workers, a started Python that answers on its
standard streams, and one that a shell starts. Each prints numbered lines, in one write each, that a replay must repeat.
"""

import multiprocessing
import os
import select
import subprocess
import sys
import time


def is_over():
    return os.path.exists("stop")


class Counter:
    """Prints the lines of one process."""

    def __init__(self):
        self.n = 0

    def show(self, what):
        self.n += 1
        line = f"{os.getpid()} {self.n} {what} {os.urandom(3).hex()} {time.time()}\n"
        os.write(1, line.encode())


COUNTER = Counter()


def ask(to, back, number):
    """Send a number through a pipe and return the answer; None: nobody answers."""
    try:
        os.write(to, b"%8d" % number)
    except BrokenPipeError:
        return None
    while not is_over():
        if select.select([back], [], [], 0.05)[0]:
            return os.read(back, 8) or None
    return None


def answer(source, target):
    """Answer numbers until nobody asks."""
    while not is_over():
        if not select.select([source], [], [], 0.05)[0]:
            continue
        data = os.read(source, 8)
        if not data:
            return
        COUNTER.show("answers")
        try:
            os.write(target, b"%8d" % (int(data) * 2))
        except BrokenPipeError:
            return


def count():
    while not is_over():
        COUNTER.show("counts")
        time.sleep(0.01)


def forked():
    """Fork the process that answers, and which forks one that counts; return the descriptors."""
    (source, to), (back, target) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(to)
        os.close(back)
        COUNTER.n = 0
        if os.fork() == 0:
            COUNTER.n = 0
            count()
            os._exit(0)
        answer(source, target)
        os._exit(0)
    os.close(source)
    os.close(target)
    return to, back


def started():
    """Start a Python that answers; return it and the descriptors."""
    words = [sys.executable, __file__, "answer"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    return process, process.stdin.fileno(), process.stdout.fileno()


def work(number):
    COUNTER.show("works")
    return number * 3


def main():
    COUNTER.show("begins")
    to, back = forked()
    python, its_input, its_output = started()
    shell = subprocess.Popen(["sh", "-c", f'"{sys.executable}" "{__file__}" count; exit 3'])
    pool = multiprocessing.get_context("fork").Pool(2)
    number = 0
    while not is_over():
        number += 1
        answers = [ask(to, back, number), ask(its_input, its_output, number)]
        result = pool.apply_async(work, (number,))
        result.wait(0.05)
        COUNTER.show(f"has {answers} {result.get() if result.ready() else None}".replace(" ", "_"))
        time.sleep(0.005)
        if number % 20 == 0:
            short = os.fork()
            if short == 0:
                COUNTER.n = 0
                COUNTER.show("comes")
                os._exit(4)
            os.waitpid(short, 0)
    pool.terminate()
    python.stdin.close()
    python.wait()
    shell.wait()


if __name__ == "__main__":
    if sys.argv[1:] == ["answer"]:
        output = os.dup(1)
        os.dup2(2, 1)
        answer(0, output)
    elif sys.argv[1:] == ["count"]:
        count()
    else:
        main()
