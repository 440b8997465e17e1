"""Opens, moves, copies and closes descriptors at random, and reads at random times from /proc which ones it has."""

import fcntl
import mmap
import os
import random
import select
import socket
import sqlite3
import sys
import tempfile

chance = random.Random(int(sys.argv[1]))
numbers: list[int] = []
objects: list[object] = []
epolls: list[object] = []
databases = 0


def look() -> None:
    """Read what the kernel has; the recording contains the answers."""
    for number in sorted(map(int, os.listdir("/proc/self/fd"))):
        try:
            os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue  # it was that of the list itself
        with open(f"/proc/self/fdinfo/{number}", "rb", buffering=0) as info:
            info.read(200)


def name() -> str:
    return chance.choice(["a", "b", "c", "sub/a", "sub/b"])


def some() -> int:
    return chance.choice(numbers) if numbers else 1


def open_number() -> None:
    flags = chance.choice([os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_TRUNC, os.O_RDWR | os.O_APPEND])
    numbers.append(os.open(name(), flags | os.O_CREAT, 0o600))


def open_below_directory() -> None:
    directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    numbers.append(os.open(name(), os.O_RDWR | os.O_CREAT, 0o600, dir_fd=directory))
    os.close(directory)


def open_object() -> None:
    mode = chance.choice(["wb", "ab", "r+b", "w", "a+b"])
    made = open(name(), mode, buffering=chance.choice([0, -1]) if "b" in mode else -1)
    objects.append(made)
    made.write(b"hello" if "b" in mode else "hello")
    if chance.random() < 0.5:
        made.flush()


def write() -> None:
    os.write(some(), bytes(chance.randrange(20)))


def read() -> None:
    os.read(some(), chance.randrange(20))


def seek() -> None:
    os.lseek(some(), chance.randrange(10), chance.choice([os.SEEK_SET, os.SEEK_CUR, os.SEEK_END]))


def at_offsets() -> None:
    os.pwrite(some(), b"12345", chance.randrange(20))
    os.pread(some(), 3, 1)
    os.preadv(some(), [bytearray(2)], 0)


def vectors() -> None:
    os.writev(some(), [b"1", b"23"])
    os.readv(some(), [bytearray(2), bytearray(1)])


def between_files() -> None:
    if chance.random() < 0.5:
        os.sendfile(some(), some(), chance.choice([None, 0, 2]), 4)
    else:
        os.copy_file_range(some(), some(), 3, chance.choice([None, 1]), chance.choice([None, 30]))


def resize() -> None:
    os.ftruncate(some(), chance.randrange(30))
    os.fstat(some())


def copy() -> None:
    numbers.append(os.dup(some()))
    numbers.append(fcntl.fcntl(some(), fcntl.F_DUPFD_CLOEXEC, chance.choice([0, 30])))


def copy_over() -> None:
    target = chance.choice([40, 41, *numbers])
    os.dup2(some(), target)
    if target not in numbers:
        numbers.append(target)


def close() -> None:
    if numbers:
        os.close(numbers.pop(chance.randrange(len(numbers))))


def close_object() -> None:
    if objects:
        objects.pop(chance.randrange(len(objects)))


def close_many() -> None:
    low = chance.randrange(3, 30)
    if not objects and not databases:
        os.closerange(low, low + 4)
        numbers[:] = [each for each in numbers if not low <= each < low + 4]


def pipe() -> None:
    os.set_blocking(os.pipe()[0], False)


def make_socket() -> None:
    objects.extend(chance.choice([lambda: [socket.socket()], socket.socketpair])())


def drop_socket() -> None:
    socket.socket()


def make_map() -> None:
    number = os.open("map", os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(number, 100)
    objects.append(mmap.mmap(number, 50))
    os.close(number)


def make_others() -> None:
    epolls.append(select.epoll())
    numbers.append(os.eventfd(1, os.EFD_NONBLOCK | os.EFD_CLOEXEC))
    os.memfd_create("memory")
    objects.append(tempfile.TemporaryFile())
    objects.append(tempfile.NamedTemporaryFile("w"))


def scan() -> None:
    for entry in os.scandir(chance.choice([".", "sub"])):
        if chance.random() < 0.3:
            objects.append(entry)
            break


def database() -> None:
    global databases
    databases += 1
    made = sqlite3.connect(f"data{databases}.sqlite")
    made.execute("create table one(x)")
    made.execute("insert into one values (1)")
    objects.append(made)


def names() -> None:
    chance.choice([lambda: os.unlink(name()), lambda: os.rename(name(), name()), lambda: os.chdir("sub/..")])()


def child() -> None:
    pid = os.fork()
    if not pid:
        if numbers:
            os.lseek(numbers[0], 5, os.SEEK_SET)
        os._exit(0)
    os.waitpid(pid, 0)


def flags() -> None:
    number = some()
    fcntl.fcntl(number, fcntl.F_SETFL, fcntl.fcntl(number, fcntl.F_GETFL) ^ chance.choice([os.O_APPEND, os.O_NONBLOCK]))


def borrow() -> None:
    if numbers:
        try:
            with open(numbers[-1], "rb", buffering=0, closefd=False) as borrowed:
                borrowed.read(2)
        finally:
            os.fstat(numbers[-1])  # so it is still open, which the log does not show otherwise


COMMON = [open_number, open_below_directory, open_object, write, read, seek, at_offsets, vectors, between_files, resize]
ACTIONS = COMMON * 2 + [
    copy,
    copy_over,
    close,
    close_object,
    close_many,
    pipe,
    make_socket,
    drop_socket,
    make_map,
    make_others,
    scan,
    database,
    names,
    child,
    flags,
    borrow,
]
os.makedirs("sub", exist_ok=True)
for _ in range(60):
    try:
        chance.choice(ACTIONS)()
    except OSError:
        pass  # it is of another kind, or empty: that changes nothing
    if chance.random() < 0.15:
        look()
look()
os._exit(0)
