"""The fence of a replay: the permitted system calls, no effect outside, and no replay without a fence."""

import json
import os
import platform
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from replaydbg.native import _core
from tests.harness import tool
from tests.harness.denied import denied
from tests.harness.sanitizer import needs_bounded_addresses

pytestmark = pytest.mark.slow

_NO_FENCE = 7
_NEVER, _ALWAYS, _MISSING = 0, 1, 2
"""Kinds in calls.h: refused and allowed whatever the arguments, and answered with ENOSYS."""

# Allowed whatever the arguments. Not taken from the table of the core, which is tested against this.
_INSIDE = set(
    """
    read readv pread64 preadv preadv2 write writev pwrite64 pwritev pwritev2 lseek sendfile splice tee
    copy_file_range fsync fdatasync readahead fadvise64 dup pipe2 eventfd2 memfd_create epoll_create1 epoll_ctl
    epoll_pwait epoll_pwait2 ppoll pselect6 timerfd_create timerfd_settime timerfd_gettime signalfd4 fstat
    newfstatat statx statfs fstatfs faccessat faccessat2 readlinkat getcwd chdir fchdir umask getdents64 getxattr
    lgetxattr fgetxattr listxattr llistxattr flistxattr getxattrat listxattrat file_getattr mmap munmap mremap
    mprotect madvise brk msync mincore mlock mlock2 munlock mlockall munlockall membarrier pkey_alloc pkey_free
    pkey_mprotect mbind get_mempolicy set_mempolicy set_mempolicy_home_node map_shadow_stack mseal futex
    futex_waitv futex_wake futex_wait futex_requeue set_robust_list set_tid_address rseq gettid sched_yield
    nanosleep clock_nanosleep restart_syscall exit rt_sigprocmask rt_sigreturn rt_sigpending
    rt_sigtimedwait rt_sigsuspend sigaltstack getitimer timer_gettime timer_getoverrun getpid getppid getpgid
    getsid getuid geteuid getgid getegid getresuid getresgid getgroups capget times getrusage getcpu sysinfo uname
    getrandom clock_gettime clock_getres gettimeofday wait4 waitid getrlimit setrlimit getpriority ioprio_get
    sched_getaffinity sched_getparam sched_getscheduler sched_getattr sched_get_priority_max
    sched_get_priority_min sched_rr_get_interval lsm_get_self_attr lsm_list_modules recvfrom recvmsg recvmmsg
    getsockname getpeername getsockopt stat lstat access readlink getdents pipe eventfd epoll_create epoll_wait
    poll select signalfd pause time getpgrp arch_prctl
    """.split()  # noqa: SIM905 - a hundred and fifty quoted names are not easier to read
)
# Allowed with some arguments; with -1 in each of them, as below, these are.
_PASSES_WITH_MINUS_ONES = set(
    ["close", "dup2", "dup3", "ftruncate", "fallocate", "setsockopt", "shutdown", "rt_sigaction", "personality"]
)
# The kernel runs no filter for these two, which have an effect only in its own trampolines.
_UNFILTERED = {"uprobe", "uretprobe"}
# These never return, or end the process in another way than by a refusal.
_ENDS = {"exit", "exit_group", "rt_sigreturn"}
_WAITS = {"pause"}
# The handler lets it through where the recording ends, too: tests/gates/test_ended_by_c_code.py.
_LED = {"exit_group"}

_TRY_EACH = """
import ctypes, os, sys
from replaydbg.native import _core

libc = ctypes.CDLL(None, use_errno=True)
found = {}
for number in eval(sys.argv[1]):
    out, into = os.pipe()
    os.set_blocking(out, False)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _core.fence(into)
        libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
        os._exit(2 + (ctypes.get_errno() == 38))
    os.close(into)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        report = os.read(out, 65536)
    except BlockingIOError:
        report = b""
    os.close(out)
    at = report.find(b"detail")
    length = report[at + 7] if at >= 0 else 0
    found[number] = status, report[at + 8:at + 8 + length].decode()
print(found)
"""


def _try_each(numbers: list[int]) -> dict[int, tuple[int, str]]:
    """Return how a process ended that made each call, and the fence's report."""
    done = subprocess.run(
        [sys.executable, "-c", _TRY_EACH, repr(numbers)], capture_output=True, text=True, timeout=300, check=True
    )
    found: dict[int, tuple[int, str]] = eval(done.stdout)
    return found


def test_every_system_call_number_passes_or_is_refused_as_the_list_says() -> None:
    calls = _core.system_calls()
    names = {number: name for number, (name, _) in calls.items()}
    x32 = [0x40000000 | number for number in (0, 39, 59, 512)] if platform.machine() == "x86_64" else []
    numbers = [n for n in (*range(600), 999, 5000, 1 << 29, *x32) if names.get(n) not in _WAITS | _UNFILTERED]

    found = _try_each(numbers)

    passed = {names.get(n, n) for n, (status, _) in found.items() if status in (2, 3) or names.get(n) in _ENDS}
    missing = {name for name, kind in calls.values() if kind == _MISSING}
    assert missing == {
        *("clone3", "close_range", "io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents"),
        *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    }
    here = set(names.values())
    assert passed == ((_INSIDE - _WAITS) & here) | (_PASSES_WITH_MINUS_ONES & here) | _LED | missing
    for number, (status, report) in found.items():
        if names.get(number, number) not in passed:
            assert status == tool.DIVERGED, (number, status)
            assert report.startswith(names.get(number, f"system call {number}")), report
    # A call without a row is refused like one whose row refuses it.
    assert {name for name, kind in calls.values() if kind == _ALWAYS} == _INSIDE & here
    assert not {name for name, kind in calls.values() if kind == _NEVER} & passed


_IN_32_BITS = """
import ctypes, mmap, os, sys
from replaydbg.native import _core

room = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
room.write(bytes.fromhex("53b8") + int(sys.argv[2]).to_bytes(4, "little") + bytes.fromhex("31db31c9cd805bc3"))
enter = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(room)))
_core.fence(int(sys.argv[1]))
os._exit(77 if enter() == -38 else 78)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the 32-bit entry is one of x86")
def test_the_32_bit_entry_of_the_kernel_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "report").open("wb") as report:
        done = subprocess.run(
            [sys.executable, "-c", _IN_32_BITS, str(report.fileno()), "20"],
            pass_fds=[report.fileno()],
            timeout=60,
            check=False,
        )

    if done.returncode in (77, -signal.SIGSEGV):
        pytest.skip("this kernel has no 32-bit entry")
    assert done.returncode == tool.DIVERGED
    assert b"32-bit system call 20" in (tmp_path / "report").read_bytes()


_STATE = """
import os
from replaydbg.native import _core

_core.fence(-1)
status = dict(line.split(":", 1) for line in os.fdopen(os.open("/proc/self/status", os.O_RDONLY)))
names = "CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp"
print({name: int(status[name], 16) for name in names})
"""


def test_a_fenced_process_has_no_privilege() -> None:
    done = subprocess.run([sys.executable, "-c", _STATE], capture_output=True, text=True, timeout=60, check=True)

    none = dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapAmb"), 0)
    assert eval(done.stdout) == none | {"NoNewPrivs": 1, "Seccomp": 2}


# ---- actions, each in a replay ----

# Does nothing during the recording; in a replay it is behind a filter.
_PROGRAM = """
import ctypes, os, struct, sys

class Behind: # the C library's functions themselves: found by their version, they are not led to the core
    find = ctypes.CDLL(None).dlvsym
    find.restype = ctypes.c_void_p

    def __getattr__(self, name):
        return ctypes.CFUNCTYPE(ctypes.c_long)(self.find(None, name.encode(), b"GLIBC_2.2.5"))

libc = Behind()
victim = {victim!r}
other = {other}

def call(number, *args):
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])

def is_fenced():
    fd = call(2, b"/proc/self/status", 0, 0)
    text = ctypes.create_string_buffer(8192)
    call(0, fd, text, 8191)
    call(3, fd)
    return b"Seccomp:\\t2" in text.raw

def pair():
    fds = (ctypes.c_int * 2)()
    call(53, 1, 1, 0, fds)
    return fds

def own(what):
    for fd in range(3, 70000):
        text = ctypes.create_string_buffer(200)
        if call(89, b"/proc/self/fd/%d" % fd, text, 199) > 0 and text.raw.startswith(what):
            return fd

print("before", flush=True)
if is_fenced():
    {act}
print("after")
"""
# The actions, and their names in the divergence.
_ACTS = {
    "attributes": ("call(16, call(2, victim, 0), 0x40086602, ctypes.byref(ctypes.c_long(64)))", "ioctl("),
    "signal of a descriptor": ("call(72, pair()[0], 8, other)", "fcntl("),
    "number of that signal": ("call(72, pair()[0], 10, 9)", "fcntl("),
    "signals of input": ("call(72, pair()[0], 4, 0x2002)", "fcntl("),
    "lease": ("call(72, call(2, victim, 0), 1024, 1)", "fcntl("),
    "priority": ("call(141, 0, other, 5)", "setpriority("),
    "priority of a user": ("call(141, 2, 0, 5)", "setpriority("),
    "input priority": ("call(251, 1, other, 3 << 13)", "ioprio_set("),
    "scheduling": ("call(314, other, struct.pack('IIQiIQQQ', 48, 3, 0, 0, 0, 0, 0, 0), 0)", "sched_setattr("),
    "affinity": ("call(203, other, 8, struct.pack('Q', 1))", "sched_setaffinity("),
    "limits": ("call(302, other, 7, struct.pack('QQ', 64, 64), 0)", "prlimit64("),
    "signal": ("call(62, other, 0)", "kill("),
    "signal to the group": ("call(62, 0, 0)", "kill("),
    "shared memory": ("call(30, 0, 0, 0)", "shmat("),
    "removal of shared memory": ("call(31, -1, 0, 0)", "shmctl("),
    "semaphores": ("call(66, -1, 0, 16, 7)", "semctl("),
    "messages": ("call(70, -1, ctypes.create_string_buffer(99), 9, 0, 2048)", "msgrcv("),
    "handle": ("call(304, call(2, b'/', 0), struct.pack('Ii', 8, 1) + bytes(8), 0o1001)", "open_by_handle_at("),
    "network interface": ("call(16, pair()[0], 0x8914, struct.pack('16sh', b'lo', 65) + bytes(22))", "ioctl("),
    "typing": ("call(16, 0, 0x5412, b'x')", "ioctl("),
    "socket": ("call(41, 2, 1, 0)", "socket("),
    "packets": ("call(53, 16, 3, 0, (ctypes.c_int * 2)())", "socketpair("),
    "deletion": ("call(87, victim)", 'unlink("'),
    "opening to write": ("call(2, victim, 1)", 'open("'),
    "emptying": ("call(257, -100, victim, 0o1000)", 'openat("'),
    "unnamed file": ("call(257, -100, b'/tmp', 0o20200002, 0o600)", 'openat("'),
    "truncation of a stream": ("call(77, 1, 0)", "ftruncate("),
    "command": ("call(59, b'/bin/true', 0, 0)", 'execve("/bin/true")'),
    "process": ("call(57)", "fork("),
    "process by clone": ("call(56, 17, 0, 0, 0, 0)", "clone("),
    "process like the debugger's": ("call(56, 0x1208000, 0, 0, 0, 0)", "clone("),
    "namespace": ("call(56, 0x10000000 | 0x10f00, 0, 0, 0, 0)", "clone("),
    "filter": ("call(317, 1, 0, 0)", "seccomp("),
    "own filter": ("call(157, 22, 2, 0)", "prctl("),
    "survival": ("call(157, 1, 0)", "prctl("),
    "tracing": ("call(157, 0x59616d61, -1)", "prctl("),
    "mount": ("call(433, -100, b'/', 0)", 'fspick("/"'),
    "clock": ("call(305, 0, ctypes.create_string_buffer(512))", "clock_adjtime("),
    "unknown number": ("call(999)", "system call 999("),
    "handler of the program's": (
        "libc.signal(31, libc.abs); call(87, victim)",
        'unlink("',
    ),
    "signal ignored": ("libc.signal(31, ctypes.c_void_p(1)); call(87, victim)", 'unlink("'),
    "tool's descriptor": ("call(33, 0, own(b'/memfd:replaydbg-report'))", "dup2("),
    "its mode": ("call(77, own(b'/memfd:replaydbg-report'), 0)", "ftruncate("),
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the acts are numbers of x86")
@pytest.mark.parametrize(("act", "name"), _ACTS.values(), ids=_ACTS)
def test_a_replay_ends_at_an_act_outside_and_names_it(act: str, name: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    with subprocess.Popen(["sleep", "100"]) as other:
        try:
            recording = _record(tmp_path, _PROGRAM.format(victim=bytes(victim), other=other.pid, act=act))

            replayed = _replay(tmp_path, recording)

            nice = os.getpriority(os.PRIO_PROCESS, other.pid)
            alive = other.poll() is None
        finally:
            other.kill()
    assert (replayed.returncode, replayed.stdout) == (tool.DIVERGED, "before\n"), replayed.stderr
    assert name in replayed.stderr
    assert victim.read_text() == "untouched"
    assert alive
    assert nice == os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the acts are numbers of x86")
def test_a_call_refused_while_signals_are_blocked_is_named_as_a_refusal(tmp_path: Path) -> None:
    """The kernel ends the process then. Also for a recording that has no end, or ended by a signal."""
    act = "call(14, 2, struct.pack('Q', 0xffffffffffffffff), 0, 8); call(87, victim)"
    recording = _record(tmp_path, _PROGRAM.format(victim=b"victim", other=0, act=act + "\n    os.kill(os.getpid(), 9)"))

    replayed = _replay(tmp_path, recording)

    assert replayed.returncode == tool.DIVERGED
    assert "signals were blocked" in replayed.stderr
    assert "divergence-refused" in replayed.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the acts are numbers of x86")
def test_nothing_that_the_tool_inherited_is_written_to(tmp_path: Path) -> None:
    act = "[call(1, fd, b'written', 7) for fd in range(3, 900)]; call(87, victim)"
    recording = _record(tmp_path, _PROGRAM.format(victim=b"victim", other=0, act=act))
    ours, theirs = socket.socketpair()
    with ours, theirs, (tmp_path / "inherited").open("w") as file:
        ours.setblocking(False)

        replayed = _replay(tmp_path, recording, fds=(theirs.fileno(), file.fileno()))

        with pytest.raises(BlockingIOError):
            ours.recv(10)
    assert replayed.returncode == tool.DIVERGED, replayed.stderr
    assert (tmp_path / "inherited").read_bytes() == b""


@needs_bounded_addresses
def test_a_replay_has_about_as_much_memory_as_the_recorded_run(tmp_path: Path) -> None:
    """The recorded program has a terabyte of address space, its replay does not."""
    program = """
import ctypes, sys

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
print("before", flush=True)
if sys.flags.hash_randomization:  # so it is in both
    room = libc.mmap(None, ctypes.c_size_t(1 << 40), 3, 0x4022, -1, 0)
    print(room == ctypes.c_void_p(-1).value, flush=True)
    libc.munmap(ctypes.c_void_p(room), ctypes.c_size_t(1 << 40))
"""
    recording = _record(tmp_path, program)
    with open_recording(recording) as opened:
        assert opened.log_header is not None
        assert opened.log_header.memory_mb >= 1 << 20

    assert _replay(tmp_path, recording).stdout == "before\nFalse\n"

    (tmp_path / "program.py").write_text(program.replace("1 << 40", "1 << 42"))
    edited = _replay(tmp_path, recording, "--current-source")
    assert "True" in edited.stderr + edited.stdout


# ---- no fence ----

_REPLAYING = {
    "replay": ["replay", "REC"],
    "current source": ["replay", "--current-source", "REC"],
    "until outcome": ["replay", "--current-source", "--until-outcome", "REC"],
    "check": ["check", "REC"],
    "hits": ["hits", "REC"],
    "seek": ["seek", "REC", "@end"],
    "why": ["why", "REC", "x"],
    "log": ["log", "REC", "program.py:1", "x"],
    "exceptions": ["exceptions", "REC", "--json"],
    "debug": ["debug", "REC"],
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _record(tmp_path_factory.mktemp("plain"), "x = 1\nprint('ran')\n")


@pytest.mark.parametrize("words", _REPLAYING.values(), ids=_REPLAYING)
def test_no_command_replays_without_the_fence(words: list[str], plain: Path, tmp_path: Path) -> None:
    command = [str(plain) if word == "REC" else word for word in words]

    stopped = _without_seccomp(command, tmp_path)

    # Any error ends a `git bisect run` that calls it.
    assert stopped.returncode == (128 if words[0] == "check" else _NO_FENCE), stopped.stderr
    assert "This system cannot isolate a replay" in stopped.stderr
    assert "Operation not permitted" in stopped.stderr
    assert stopped.stderr.count("\n") == 1
    assert "ran" not in stopped.stdout


@pytest.mark.parametrize("words", _REPLAYING.values(), ids=_REPLAYING)
def test_an_option_replays_without_the_fence_and_reports_it(words: list[str], plain: Path, tmp_path: Path) -> None:
    command = [str(plain) if word == "REC" else word for word in words]

    done = _without_seccomp([*command, "--no-fence"], tmp_path)

    assert done.returncode != _NO_FENCE, done.stderr
    assert "cannot isolate" not in done.stderr
    assert "runs with all your rights" in done.stderr


def test_doctor_tries_the_fence(tmp_path: Path) -> None:
    here = subprocess.run(
        [sys.executable, "-m", "replaydbg", "doctor", "--json"],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    there = _without_seccomp(["doctor", "--json"], tmp_path)

    fences = [
        next(each for each in json.loads(done.stdout)["checks"] if each["name"] == "fence") for done in (here, there)
    ]
    assert [each["is_fine"] for each in fences] == [True, False]
    assert "Operation not permitted" in fences[1]["detail"]
    assert there.returncode == 1


@pytest.mark.parametrize(
    ("call", "name", "status"), [("memfd_create", "memory files", 1), ("pidfd_open", "other processes", 0)]
)
def test_doctor_names_a_system_call_that_is_refused(call: str, name: str, status: int, tmp_path: Path) -> None:
    command = denied(call, [sys.executable, "-m", "replaydbg", "doctor", "--json"])

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)

    check = next(each for each in json.loads(done.stdout)["checks"] if each["name"] == name)
    assert (check["is_fine"], done.returncode) == (False, status)
    assert f"{call} is refused (Operation not permitted)" in check["detail"]


def _record(folder: Path, program: str) -> Path:
    (folder / "program.py").write_text(program)
    recording = folder / "recording.rdbg"
    command = tool.record(sys.executable, recording, [str(folder / "program.py")])
    subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False)
    assert recording.exists()
    return recording


def _replay(
    folder: Path, recording: Path, *options: str, fds: tuple[int, ...] = ()
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*tool.replay(sys.executable, recording), *options],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False, pass_fds=fds,
    )  # fmt: skip


def _without_seccomp(words: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    command = denied("seccomp", [sys.executable, "-m", "replaydbg", *words])
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
    )


def test_doctor_tries_the_fence_of_its_own_installation(tmp_path: Path) -> None:
    """A checkout in the working directory has no core, and may be somebody else's."""
    (tmp_path / "replaydbg").mkdir()
    (tmp_path / "replaydbg" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    home = str(Path(__file__).parents[2])
    command = (
        f"import sys; sys.path[:] = [{home!r}, *sys.path[1:]]; from replaydbg.cli.main import main; main(['doctor'])"
    )

    done = subprocess.run(
        [sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert "tested: the kernel refuses" in done.stdout, done.stdout + done.stderr
