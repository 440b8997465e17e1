"""Which of CPython's test modules are run, and how long each may take."""

# What the gates of single-threaded programs cover.
_GATES = (
    "test_random",
    "test_time",
    "test_datetime",
    "test_uuid",
    "test_tempfile",
    "test_shutil",
    "test_glob",
    "test_pathlib",
    "test_os",
    "test_io",
    "test_fileio",
    "test_sqlite3",
    "test_subprocess",
    "test_logging",
    "test_argparse",
)

# Children, seen from their parent. Those of multiprocessing take minutes and are not installed everywhere: they are
# named on the command line.
_PROCESSES = (
    "test_fork1",
    "test_wait3",
    "test_wait4",
    "test_pty",
    "test_popen",
    "test_multiprocessing_main_handling",
)

# What identity, garbage and the step clock touch: hashes, orders, addresses, finalizers, tracing programs.
_ENGINE = (
    "test_set",
    "test_weakref",
    "test_gc",
    "test_hash",
    "test_weakset",
    "test_dict",
    "test_functools",
    "test_reprlib",
    "test_copy",
    "test_sys_settrace",
    "test_sys_setprofile",
)
# Threads and what waits between them; handlers of signals.
_LANES = (
    "test_thread",
    "test_threading",
    "test_threading_local",
    "test_importlib.test_threaded_import",
    "test_queue",
    "test_signal",
    "test_contextlib_async",
)
# Sockets, TLS and what waits for them; most of these tests have a server in a thread.
_NETWORK = (
    "test_socket",
    "test_ssl",
    "test_select",
    "test_selectors",
    "test_poll",
    "test_epoll",
    "test_httplib",
    "test_urllib2_localnet",
    "test_httpservers",
    "test_xmlrpc",
    "test_ftplib",
    "test_poplib",
    "test_imaplib",
    "test_asyncio",
)
# `sys.monitoring` came with 3.12.
_SINCE_312 = ("test_monitoring",)
# Before 3.13 these are a directory that an installation leaves out.
_SINCE_313 = ("test_concurrent_futures",)

# Seconds. On a shared two-core machine test_asyncio takes 3 minutes, the other three 11 to 15 s; a run that takes
# twenty times as long hangs.
_TIMEOUTS = {
    "test_asyncio": 900.0,
    "test_concurrent_futures": 900.0,
    "test_subprocess": 600.0,
    "test_io": 600.0,
    "test_logging": 600.0,
}
_TIMEOUT = 300.0
# Tests that wait for ever, plain too: in a virtual machine whose host does not answer its sockets.
_LEFT_OUT = {"test_socket": ("*VSOCK*",)}


def modules_of(python: str) -> tuple[str, ...]:
    """The modules to run on Python `python` ("3.12")."""
    since = {"3.11": (), "3.12": _SINCE_312}.get(python, _SINCE_312 + _SINCE_313)
    return _GATES + _PROCESSES + _LANES + _NETWORK + _ENGINE + since


def left_out_of(module: str) -> tuple[str, ...]:
    """Patterns of tests of `module` that are not run."""
    return _LEFT_OUT.get(module, ())


def timeout_of(module: str) -> float:
    """Seconds after which a run of `module` is killed."""
    return _TIMEOUTS.get(module, _TIMEOUT)
