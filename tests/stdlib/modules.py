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
# `sys.monitoring` came with 3.12.
_SINCE_312 = ("test_monitoring",)

# Seconds. On a shared two-core machine these three take 11 to 15 s plain and every other under 3 s; a run that takes
# twenty times as long hangs.
_TIMEOUTS = {"test_subprocess": 600.0, "test_io": 600.0, "test_logging": 600.0}
_TIMEOUT = 300.0


def modules_of(python: str) -> tuple[str, ...]:
    """The modules to run on Python `python` ("3.12")."""
    return _GATES + _PROCESSES + _ENGINE + (() if python == "3.11" else _SINCE_312)


def timeout_of(module: str) -> float:
    """Seconds after which a run of `module` is killed."""
    return _TIMEOUTS.get(module, _TIMEOUT)
