"""The table of programs of several processes."""

from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version


@dataclass(frozen=True, slots=True)
class Scenario:
    """A program, and how it is run."""

    name: str
    distribution: str | None
    """Whose version is shown; None: only the standard library."""
    does: str
    command: tuple[str, ...]
    """The interpreter's arguments; {port} is a free port, {python} the interpreter."""
    shows: str
    """A text in its output."""
    files: dict[str, str] = field(default_factory=dict)
    """Files of its directory: their names, and those in `programs/`."""
    client: tuple[str, ...] = ()
    """A program that is run beside it, unrecorded; when it has ended the first one gets SIGTERM."""
    processes: int = 2
    """Minimum number of recorded processes."""
    exit_code: int = 0

    @property
    def version(self) -> str | None:
        """The version that is installed; None: it is not."""
        if self.distribution is None:
            return ""
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None


SCENARIOS = (
    Scenario(
        "gunicorn",
        "gunicorn",
        "a pre-fork server of three workers with two threads, 200 requests of four clients",
        ("-m", "gunicorn", "-w", "3", "--threads", "2", "-b", "127.0.0.1:{port}", "site_of_two:wsgi"),
        "Booting worker",
        {"site_of_two.py": "site.py", "ask.py": "ask_site.py"},
        ("ask.py", "{port}"),
        processes=4,
    ),
    Scenario(
        "uvicorn",
        "uvicorn",
        "three workers that are spawned, 200 requests of four clients",
        ("-m", "uvicorn", "--workers", "3", "--port", "{port}", "site_of_two:asgi"),
        "Application startup complete",
        {"site_of_two.py": "site.py", "ask.py": "ask_site.py"},
        ("ask.py", "{port}"),
        processes=4,
    ),
    Scenario(
        "celery",
        "celery",
        "a worker of two processes (prefork), with queues in files; 20 tasks",
        ("-m", "celery", "-A", "tasks", "worker", "-c", "2", "-l", "info", "--without-mingle", "--without-gossip"),
        "succeeded in",
        {"tasks.py": "tasks.py", "ask.py": "ask_tasks.py"},
        ("ask.py",),
        processes=3,
    ),
    Scenario(
        "pip",
        "pip",
        "builds a source distribution, in a process of the build backend, and installs it",
        (
            "-m",
            "pip",
            "install",
            "--no-build-isolation",
            "--no-deps",
            "--no-index",
            "--target",
            "installed",
            "./source",
        ),
        "Successfully installed small-example-1.0",
        {"source/setup.py": "setup.py.in", "source/small_example.py": "roots.py"},
    ),
    Scenario(
        "make",
        None,
        "`make -j4` with five Python steps; what `make` itself prints is suppressed",
        ("-c", "import subprocess, sys; sys.exit(subprocess.call(['make', '-sj4', 'PYTHON={python}']))"),
        "['a.txt', 'b.txt', 'c.txt', 'd.txt']",
        {"Makefile": "Makefile.in"},
        processes=6,
    ),
    Scenario(
        "joblib",
        "joblib",
        "three processes of loky",
        ("roots.py",),
        "1770.0",
        {"roots.py": "roots.py"},
        processes=4,
    ),
    Scenario(
        "xdist",
        "pytest-xdist",
        "`pytest -n 4`, 20 tests",
        ("-m", "pytest", "-q", "-n", "4", "-p", "no:cacheprovider", "test_many.py"),
        "1 failed, 19 passed",
        {"test_many.py": "test_many.py.in"},
        processes=5,
        exit_code=1,
    ),
    Scenario(
        "raft",
        None,
        "three forked processes elect a leader and agree on a log, over UDP",
        ("raft.py",),
        "agreed",
        {"raft.py": "raft.py"},
        processes=4,
    ),
)
