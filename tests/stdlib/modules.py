"""Which of CPython's test modules are run, and how long each may take."""

# Those of the first milestone: what the gates of single-threaded programs cover.
MODULES = (
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

# Seconds. On a shared two-core machine these three take 11 to 15 s plain and every other under 3 s; a run that takes
# twenty times as long hangs.
_TIMEOUTS = {"test_subprocess": 600.0, "test_io": 600.0, "test_logging": 600.0}
_TIMEOUT = 300.0


def timeout_of(module: str) -> float:
    """Seconds after which a run of `module` is killed."""
    return _TIMEOUTS.get(module, _TIMEOUT)
