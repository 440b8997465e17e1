"""A future has files of its own: they behave as on a file system, and no other future and no directory has them."""

import os
from pathlib import Path

import pytest

from tests.futures.made import Ground

pytestmark = pytest.mark.slow

# What is done after the moment, with what must hold.
ACTS = {
    "write and read": """
with open("new", "w") as file:
    assert file.write("one\\ntwo\\n") == 8
assert open("new").read() == "one\\ntwo\\n" and open("new", "rb").readlines() == [b"one\\n", b"two\\n"]
""",
    "append": """
for text in ("one", "two"):
    with open("new", "a") as file:
        file.write(text)
        assert file.tell() in (3, 6)
assert open("new").read() == "onetwo"
""",
    "write and read in one": """
with open("new", "w+b") as file:
    file.write(b"abcdef")
    file.seek(2)
    assert file.read(2) == b"cd"
    file.write(b"X")
    file.truncate(5)
with open("new", "r+b") as file:
    file.seek(-1, os.SEEK_END)
    file.write(b"YZ")
assert open("new", "rb").read() == b"abcdYZ"
""",
    "descriptors": """
fd = os.open("new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
assert os.write(fd, b"abcdef") == 6 and os.pwrite(fd, b"X", 1) == 1 and os.lseek(fd, 0, os.SEEK_SET) == 0
assert os.read(fd, 3) == b"aXc" and os.pread(fd, 2, 4) == b"ef"
copy = os.dup(fd)
assert os.read(copy, 9) == b"def" and os.read(fd, 9) == b""
os.ftruncate(fd, 2)
os.fsync(fd)
assert os.fstat(fd).st_size == 2 and os.fstat(fd).st_mode & 0o777 == 0o600
os.close(fd)
assert os.pread(copy, 9, 0) == b"aX"
""",
    "two files of one name": """
one, other = open("new", "w"), open("new", "r")
one.write("abcdef"); one.flush()
assert other.read(2) == "ab"
one.write("ghi"); one.flush()
assert other.read() == "cdefghi"
""",
    "what is not there": """
os.mkdir("made")
for act in (lambda: open("none"), lambda: os.unlink("none"), lambda: os.rename("made/none", "x"),
            lambda: os.stat("none"), lambda: os.listdir("made/none"), lambda: open("none/x", "w")):
    try:
        act()
    except FileNotFoundError as error:
        assert error.filename, error
    else:
        raise AssertionError(act)
assert not os.path.exists("made/none")
""",
    "what is there": """
open("new", "w").close(); os.mkdir("made")
for act, error in ((lambda: open("new", "x"), FileExistsError), (lambda: os.mkdir("made"), FileExistsError),
                   (lambda: os.rmdir("new"), NotADirectoryError), (lambda: open("made", "w"), IsADirectoryError),
                   (lambda: open("new/x", "w"), NotADirectoryError), (lambda: os.unlink("made"), IsADirectoryError)):
    try:
        act()
    except error:
        continue
    raise AssertionError(error)
""",
    "rename and replace": """
open("new", "w").write("new"); open("old", "w").write("old")
os.replace("new", "old")
assert open("old").read() == "new" and not os.path.exists("new")
os.makedirs("made/below"); open("made/below/file", "w").write("x")
os.rename("made", "moved")
assert open("moved/below/file").read() == "x" and not os.path.exists("made/below")
""",
    "unlinked and open": """
file = open("new", "w+"); file.write("x"); file.flush()
os.unlink("new")
assert not os.path.exists("new") and os.fstat(file.fileno()).st_nlink == 0
file.seek(0)
assert file.read() == "x"
""",
    "directories": """
os.makedirs("made/a/b"); open("made/file", "w").write("x")
assert sorted(os.listdir("made")) == ["a", "file"] and os.path.isdir("made/a") and not os.path.isfile("made/a")
found = {entry.name: (entry.is_dir(), entry.is_file(), entry.path) for entry in os.scandir("made")}
assert found == {"a": (True, False, "made/a"), "file": (False, True, "made/file")}, found
assert [names for _, names, _ in os.walk("made")] == [["a"], ["b"], []]
try:
    os.rmdir("made")
except OSError as error:
    assert error.errno == 39
shutil.rmtree("made")
assert not os.path.exists("made")
""",
    "links": """
open("new", "w").write("x")
os.link("new", "other"); os.symlink("new", "soft")
assert os.stat("other").st_nlink == 2 and os.path.samefile("new", "other")
assert os.readlink("soft") == "new" and os.path.islink("soft") and open("soft").read() == "x"
open("soft", "a").write("y")
assert open("other").read() == "xy"
""",
    "status": """
before = time.time()
open("new", "w").write("12345")
found = os.stat("new")
assert found.st_size == 5 and stat.S_ISREG(found.st_mode) and before - 1 <= found.st_mtime <= time.time() + 1
os.chmod("new", 0o640); os.utime("new", (1, 2))
assert os.stat("new").st_mode & 0o777 == 0o640 and os.stat("new").st_mtime == 2 and os.access("new", os.R_OK)
assert os.path.getsize("new") == 5 and pathlib.Path("new").exists()
""",
    "sync a directory": """
fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
os.fsync(fd)
assert stat.S_ISDIR(os.fstat(fd).st_mode)
os.close(fd)
""",
    "tempfile": """
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("x"); file.seek(0)
    assert file.read() == "x" and os.path.exists(file.name)
assert not os.path.exists(file.name)
with tempfile.TemporaryDirectory() as name:
    pathlib.Path(name, "file").write_text("y")
    os.makedirs(os.path.join(name, "a", "b"))
    assert sorted(os.listdir(name)) == ["a", "file"]
assert not os.path.exists(name)
number, name = tempfile.mkstemp()
os.close(number)
with tempfile.TemporaryFile() as file:
    file.write(b"x"); file.seek(0)
    assert file.read() == b"x"
""",
    "copy": """
open("new", "w").write("x" * 100_000)
shutil.copyfile("new", "copy"); shutil.copy2("new", "other"); shutil.move("copy", "moved")
assert open("moved").read() == open("other").read() == "x" * 100_000
""",
    "what it has read before": """
open("program.py", "a").write("# more")
assert open("program.py").read().endswith("# more") and open("program.py").read().startswith("import")
os.unlink("program.py")
assert not os.path.exists("program.py")
""",
    "where it goes": """
os.mkdir("made"); os.chdir("made")
open("new", "w").write("x")
os.chdir("..")
assert os.getcwd() == WHERE and open("made/new").read() == "x"
""",
    "permissions": """
def mode(path): return stat.S_IMODE(os.stat(path).st_mode)
assert os.umask(0o077) == 0o027
os.mkdir("private"); os.mkdir("told", 0o705); open("new", "w").close()
assert (mode("private"), mode("told"), mode("new")) == (0o700, 0o700, 0o600)
os.chmod("private", 0o1751); os.rename("private", "moved")
assert mode("moved") == 0o1751 and os.access("moved", os.X_OK)
fd = os.open("moved", os.O_RDONLY)
assert stat.S_IMODE(os.fstat(fd).st_mode) == 0o1751
assert os.umask(0o022) == 0o077
os.makedirs("a/b", 0o750)
assert mode("a/b") == 0o750
assert mode(tempfile.mkdtemp(dir="a")) == 0o700
""",
    "a log": """
logging.basicConfig(filename="log", level=logging.INFO)
logging.info("one")
assert open("log").read() == "INFO:root:one\\n"
""",
    "an archive": """
with zipfile.ZipFile("new.zip", "w") as archive:
    archive.writestr("name", "content")
assert zipfile.ZipFile("new.zip").read("name") == b"content"
""",
    "a shelf": """
with dbm.dumb.open("shelf", "c") as data:
    data["one"] = "two"
with dbm.dumb.open("shelf") as data:
    assert data["one"] == b"two"
""",
}


def _program(act: str, before: str = "os.umask(0o027), os.listdir('.')") -> str:
    """Return a program that acts in a future alone: the recorded one is stopped before."""
    return (
        "import dbm.dumb, logging, os, pathlib, shutil, signal, stat, tempfile, time, zipfile\n"
        "def stop(*_): raise SystemExit(0)\n"
        "signal.signal(signal.SIGALRM, stop)\n"
        "signal.alarm(1)\n"
        "WHERE = os.getcwd()\n"
        f"open('program.py').read(), {before}\n"
        "time.sleep(60)\n"
        f"{act}\n"
        "print('done')\n"
    )


def _everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            found[str(path)] = (path.stat().st_mtime_ns, path.read_bytes())
    return found


@pytest.mark.parametrize("what", ACTS)
def test_files_behave_as_on_a_file_system(what: str, tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, _program(ACTS[what]))
    before = _everything(tmp_path)

    group = ground.futures(ground.event("time.sleep"), 1, "-o", "kept")["groups"][0]

    assert (group["verdict"], group["last_line"]) == ("passed", "done"), group
    assert {path: found for path, found in _everything(tmp_path).items() if "/kept/" not in path} == before
    assert ground.replay(group["recordings"][0]).status == 0


def test_permissions_of_what_was_made_before(tmp_path: Path) -> None:
    text = """import os, stat, tempfile, time
def mode(path): return stat.S_IMODE(os.stat(path).st_mode)
os.mkdir("usual"); open("file", "w").close()
os.umask(0o077)
os.mkdir("private"); os.mkdir("changed"); os.chmod("changed", 0o711)
made = tempfile.mkdtemp(dir=".")
time.monotonic()
found = [oct(mode(each)) for each in ("usual", "file", "private", "changed", made)]
assert found == ["0o750", "0o640", "0o700", "0o711", "0o700"], found
"""
    mask = os.umask(0o027)
    try:
        ground = Ground.make(tmp_path, text)
    finally:
        os.umask(mask)

    group = ground.one(ground.event("time.monotonic"))

    assert group["verdict"] == "passed", group


UNKNOWN = {
    "read what was never read": ("open('/etc/hostname').read()", "needs _io.FileIO.__init__('/etc/hostname', 'r')"),
    "write where nobody was": ("open('/nobody/new', 'w')", "needs _io.FileIO.__init__('/nobody/new', 'w')"),
    "append to what nobody knows": ("open('/etc/hostname', 'a')", "needs _io.FileIO.__init__('/etc/hostname', 'a')"),
    "remove what nobody knows": ("os.unlink('/etc/hostname')", "needs posix.unlink('/etc/hostname')"),
    "list what nobody has listed": ("os.listdir('.')", "needs posix.listdir('.')"),
    "ask whether it is there": ("os.path.exists('/etc/hostname')", "needs posix.stat('/etc/hostname')"),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_nobody_knows_has_no_verdict(what: str, tmp_path: Path) -> None:
    act, needs = UNKNOWN[what]
    ground = Ground.make(tmp_path, _program(act, "0"))

    group = ground.one(ground.event("time.sleep"))

    assert group["verdict"] == "inconclusive" and group["ending"].startswith(needs), group


def test_what_it_had_written_before_is_there(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("as it was\n")
    text = """import os, time
log = open("log", "w")
log.write("one\\n"); log.flush()
with open("data", "r+") as file:
    assert file.read() == "as it was\\n"
    file.seek(3); file.write("that"); file.truncate()
os.mkdir("made"); open("made/first", "w").write("x")
os.rename("made/first", "made/second")
with open("gone", "w") as file: file.write("y")
os.unlink("gone")
held = open("data"); held.read(3)
time.monotonic()
log.write("two\\n"); log.close()
assert open("log").read() == "one\\ntwo\\n"
assert held.read() == "that" and open("data").read() == "as that"
assert os.listdir("made") == ["second"] and open("made/second").read() == "x"
assert not os.path.exists("gone") and os.path.getsize("data") == 7
"""
    ground = Ground.make(tmp_path, text)
    (tmp_path / "log").write_text("another program has been here")

    found = ground.futures(ground.event("time.monotonic"), 2, "-o", "kept")

    assert (found["passed"], found["failed"], found["inconclusive"]) == (found["futures"], 0, 0), found["groups"]
    assert (tmp_path / "log").read_text() == "another program has been here"


_THREADS = """import threading, time
time.monotonic()
def work(name):
    for _ in range(3):
        try:
            count = int(open("count").read())
        except FileNotFoundError:
            count = 0
        with open("count", "w") as file:
            file.write(str(count + 1))
with open("count", "w") as file: file.write("0")
threads = [threading.Thread(target=work, args=(each,)) for each in "ab"]
for thread in threads: thread.start()
for thread in threads: thread.join()
found = int(open("count").read() or 0)
print(found)
raise SystemExit(found != 6)
"""


def test_each_future_has_its_own(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, _THREADS, status=None)

    found = ground.futures(ground.event("time.monotonic"), 20, "--keep", "all", "-o", "kept", "--jobs", "4")

    assert found["inconclusive"] == 0 and found["failed"] > 0, found["groups"]
    kept = [(name, group["status"]) for group in found["groups"] for name in group["recordings"]]
    assert len(kept) == 20 and [ground.replay(name).status for name, _ in kept] == [status for _, status in kept]


@pytest.mark.parametrize(("reads", "verdict"), [("False", "passed"), ("True", "inconclusive")])
def test_a_file_that_others_had_written_is_appended_to_but_not_read(reads: str, verdict: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("by others\n")
    text = f"""import time
log = open("log", "a")
log.write("one\\n"); log.flush()
time.monotonic()
log.write("two\\n"); log.flush()
assert log.tell() == 18
if {reads}: open("log").read()
"""
    ground = Ground.make(tmp_path, text)

    group = ground.one(ground.event("time.monotonic"))

    assert group["verdict"] == verdict, group
