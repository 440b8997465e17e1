"""`replaydbg always`: each run of an environment's interpreter is recorded, and none is harmed."""

import json
import os
import resource
import signal
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from replaydbg.cli.machine.always_start import FILE, Ring, read_ring, start_line
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.web.test_keep_failing_requests import SERVER

pytestmark = pytest.mark.slow


class Environment:
    """A virtual environment without replaydbg, and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.directory, self.store = folder, folder / "venv", folder / "store"
        venv.create(self.directory, symlinks=True, with_pip=False)
        self.python = str(self.directory / "bin/python")
        self.file = next(self.directory.glob("lib/python*/site-packages")) / FILE
        self.env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(self.store)}
        self.env.pop("VIRTUAL_ENV", None)

    def replaydbg(self, *words: str) -> Finished:
        """Run a command of replaydbg."""
        return run([sys.executable, "-m", "replaydbg", *words], cwd=self.folder, env=self.env, timeout=20)

    def on(self, *options: str) -> None:
        """Turn it on."""
        finished = self.replaydbg("always", "on", str(self.directory), *options)
        assert finished.status == 0, finished.stderr.decode()

    def run(self, *words: str, **variables: str) -> Finished:
        """Run the environment's interpreter."""
        return run([self.python, *words], cwd=self.folder, env=self.env | variables, timeout=20)

    def rows(self) -> list[tuple[int, str]]:
        """Return the status and the tags of each recording."""
        listed = json.loads(self.replaydbg("ls", "--json").stdout)["recordings"]
        return [(each["status"], " ".join(each["tags"])) for each in listed]


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """Return an environment that has never been recorded."""
    return Environment(tmp_path)


def test_the_last_runs_that_passed_are_kept_and_all_that_failed(environment: Environment) -> None:
    environment.on("--runs", "2")

    for code in (0, 3, 0, 0, 1, 0):
        assert environment.run("-c", f"raise SystemExit({code})").status == code

    assert environment.rows() == [(3, "failing"), (0, "always"), (1, "failing"), (0, "always")]
    status = json.loads(environment.replaydbg("always", "status", str(environment.directory), "--json").stdout)
    assert (status["on"], status["runs"], status["passed"], status["failed"]) == (True, 2, 2, 2)


def test_what_is_pinned_or_no_longer_tagged_is_out_of_the_ring(environment: Environment) -> None:
    environment.on("--runs", "1")
    for number in (1, 2):
        environment.run("-c", "")
        environment.replaydbg("tag", f"run-{number}", *(["pinned"] if number == 1 else ["--remove", "always"]))

    environment.run("-c", "")
    environment.run("-c", "")

    tags = [each for _, each in environment.rows()]
    assert len(tags) == 3 and tags[0] == "always pinned" and tags[2] == "always"


def test_a_limit_of_megabytes(environment: Environment) -> None:
    environment.on("--megabytes", "1")
    text = "import os; open('large', 'wb').write(os.urandom(400_000)); print(len(open('large', 'rb').read()))"

    for _ in range(4):
        assert environment.run("-c", text).stdout == b"400000\n"

    assert 1 <= len(environment.rows()) <= 2


def test_a_program_finds_what_it_finds_plainly(environment: Environment) -> None:
    text = """import os, sys, json
print(json.dumps([sys.argv, sys.orig_argv, sys.executable, sys.prefix, sys.path, sys.flags, sorted(os.environ.items()),
                  __name__, list(sys.warnoptions), sys.stdin.read()]))
"""
    (environment.folder / "program.py").write_text(text)
    forms = [
        ["program.py", "a", "-b"],
        ["-O", "-W", "error", "program.py"],
        ["-m", "program", "x"],
        ["-I", "program.py"],
    ]
    plainly = [environment.run(*words).stdout for words in forms]
    environment.on()

    assert [environment.run(*words).stdout for words in forms] == plainly
    assert len(environment.rows()) == len(forms)
    assert environment.replaydbg("replay", "run-1").stdout == plainly[0]


def test_in_the_c_locale_the_environment_is_the_same(environment: Environment) -> None:
    text = "import os; print(sorted(os.environ.items()))"
    for name in [each for each in environment.env if each.startswith(("LC_", "LANG"))]:
        del environment.env[name]
    plainly = environment.run("-c", text).stdout
    environment.on()

    assert environment.run("-c", text).stdout == plainly
    assert environment.run("-c", text, REPLAYDBG_STORE="/proc/nowhere").stdout != b""


def test_a_program_with_children_is_one_recording(environment: Environment) -> None:
    environment.on()
    text = "import subprocess, sys; print(subprocess.check_output([sys.executable, '-c', 'print(7)']))"

    assert environment.run("-c", text).stdout == b"b'7\\n'\n"

    rows = json.loads(environment.replaydbg("ls", "--json").stdout)["recordings"]
    assert [each["processes"] for each in rows] == [2]


NO_PROGRAMS = [["-V"], ["-h"], ["-"], [], ["-m", "pip"], ["-mpip"], ["-Im", "pip"]]


@pytest.mark.parametrize("words", NO_PROGRAMS, ids=" ".join)
def test_what_is_no_program_of_the_user_is_not_recorded(words: list[str], environment: Environment) -> None:
    before = environment.run(*words)
    environment.on()

    finished = environment.run(*words)

    assert (finished.status, finished.stdout, finished.stderr) == (before.status, before.stdout, before.stderr)
    assert environment.rows() == []


def test_neither_pip_nor_what_it_starts_is_recorded(environment: Environment) -> None:
    (environment.folder / "pip").write_text("import subprocess, sys\nsubprocess.run([sys.executable, '-c', ''])\n")
    environment.on()

    assert environment.run("pip").status == 0
    assert environment.rows() == []


def test_replaydbg_itself_is_not_recorded(environment: Environment) -> None:
    packages = environment.file.parent / "tool.pth"
    packages.write_text("\n".join(path for path in sys.path if path))
    environment.on()

    for words in (["-m", "replaydbg", "doctor"], ["-m", "replaydbg.cli.main", "ls"]):
        environment.run(*words)
    assert environment.rows() == []
    (environment.folder / "program.py").write_text("print(7)")
    assert environment.run("-m", "replaydbg", "record", "-q", "program.py").stdout == b"7\n"
    assert environment.rows() == [(0, "")]
    assert environment.run("-m", "replaydbg", "replay", "run-1").stdout == b"7\n"
    assert len(environment.rows()) == 1


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ([], "the last 20 runs that passed, and all that failed"),
        (["--runs", "1"], "the last run that passed, and all that failed"),
        (["--megabytes", "3"], "the last runs that passed, up to 3 MB, and all that failed"),
        (["--keep-failing-requests"], "runs that failed, or in which a request failed"),
    ],
)
def test_status_shows_what_is_kept_and_how_to_turn_it_off(
    environment: Environment, options: list[str], kept: str
) -> None:
    environment.on(*options)

    lines = environment.replaydbg("always", "status", str(environment.directory)).stdout.decode().splitlines()

    assert lines == [
        f"Each run of {environment.directory} is recorded. Recordings that are kept: {kept}, in {environment.store}.",
        "Kept now: 0 that passed (0 B), and 0 that failed (0 B).",
        f"To turn it off: replaydbg always off {environment.directory}, or remove {environment.file}.",
    ]


def test_off_is_off(environment: Environment) -> None:
    environment.on()
    assert environment.run("-c", "print(1)", REPLAYDBG_ALWAYS="off").stdout == b"1\n"
    assert environment.rows() == []

    finished = environment.replaydbg("always", "off", str(environment.directory))

    assert finished.stdout.decode() == f"Runs of {environment.directory} are not recorded.\n"
    assert not environment.file.exists()
    environment.run("-c", "")
    assert environment.rows() == []
    assert environment.replaydbg("always", "status", str(environment.directory)).status == 1
    assert environment.replaydbg("always", "off", str(environment.directory)).status == 0


def test_a_failing_request_is_kept_though_the_server_ends_well(environment: Environment) -> None:
    (environment.file.parent / "tool.pth").write_text(str(Path(__file__).parents[2]))
    (environment.folder / "server.py").write_text(SERVER + "[worker(path) for path in sys.argv[1:]]")
    environment.on("--runs", "1")

    for paths in (["/boom"], ["/", "/boom", "/"], ["/", "/"], ["/"]):
        assert environment.run("server.py", *paths).status == 0

    assert environment.rows() == [(0, "failing"), (0, "failing"), (0, "always")]


def test_a_request_that_fails_in_a_server_in_the_background_is_kept(environment: Environment) -> None:
    (environment.file.parent / "tool.pth").write_text(str(Path(__file__).parents[2]))
    text = """
if os.fork():
    os._exit(0)
wait_until(lambda: os.path.exists("go"))
serve("/boom")
"""
    (environment.folder / "server.py").write_text(SERVER + text)
    environment.on("--runs", "1")

    assert environment.run("server.py").status == 0
    assert environment.rows() == [(0, "always")]
    (environment.folder / "go").touch()
    wait_until(lambda: environment.rows() == [(0, "failing")])

    for _ in range(2):
        environment.run("-c", "")
    assert environment.rows() == [(0, "failing"), (0, "always")]


def test_only_what_fails_is_kept_on_demand(environment: Environment) -> None:
    environment.on("--keep-failing-requests")

    for code in (0, 3, 0):
        environment.run("-c", f"raise SystemExit({code})")

    assert environment.rows() == [(3, "failing")]


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_what_fails_in_a_child_is_kept_on_demand_though_the_server_ends_well(
    end: str, environment: Environment
) -> None:
    environment.on("--keep-failing-requests")
    text = f"import os\nif os.fork() == 0: {end}\nos.wait()"

    for _ in range(2):
        assert environment.run("-c", text).status == 0

    assert environment.rows() == [(0, "failing"), (0, "failing")]


def test_a_child_that_goes_on_is_removed_on_demand_when_it_has_ended_well(environment: Environment) -> None:
    environment.on("--keep-failing-requests")
    text = "import os, time\nif os.fork() == 0:\n    while not os.path.exists('end'): time.sleep(0.05)"

    assert environment.run("-c", text).status == 0

    assert environment.rows() == [(0, "")]
    (environment.folder / "end").touch()
    wait_until(lambda: not [*environment.store.glob("run-*")])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_program_is_kept(number: int, environment: Environment) -> None:
    environment.on()

    finished = environment.run("-c", f"import os; os.kill(os.getpid(), {number})")

    assert finished.status in (-number, 128 + number)
    assert environment.rows() == [(-number, "failing")]


def test_who_kills_what_was_started_kills_the_program(environment: Environment) -> None:
    environment.on()
    text = "import os, time; print(os.getppid(), flush=True); time.sleep(60)"
    with subprocess.Popen(
        [environment.python, "-c", text], env=environment.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and int(process.stdout.readline()) == process.pid
        process.kill()

    wait_until(lambda: environment.rows() == [(-signal.SIGKILL, "")])


# ---- whatever is wrong with us, the program runs ----


def without_tool(environment: Environment) -> None:
    text = environment.file.read_text()
    environment.file.write_text(text.replace(sys.executable, "/nowhere/python"))


def without_package(environment: Environment) -> None:
    text = environment.file.read_text()
    environment.file.write_text(text.replace("from replaydbg.cli.machine.always_run", "from nowhere"))


def with_bad_orders(environment: Environment) -> None:
    text = environment.file.read_text()
    environment.file.write_text(text.replace('"runs"', '"other"'))


def with_bad_settings(environment: Environment) -> None:
    (environment.folder / "pyproject.toml").write_text("[tool.replaydbg]\nchildren = 7\n")


def without_store(environment: Environment) -> None:
    environment.store.write_text("a file in its place")


def without_core(environment: Environment) -> None:
    (environment.folder / "pyproject.toml").write_text("[tool.replaydbg]\nrecipients = ['x']\n")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without_tool, "/nowhere/python: No such file or directory"),
        (without_package, "replaydbg cannot be imported (No module named 'nowhere')"),
        (with_bad_orders, "unexpected keyword argument"),
        (with_bad_settings, "children cannot be 7"),
        (without_store, "store"),
        (without_core, "sets 'recipients'"),
    ],
)
def test_what_cannot_be_recorded_runs_plainly(
    spoil: Callable[[Environment], None], message: str, environment: Environment
) -> None:
    text = "import os, sys; print(sys.argv, os.environ.get('REPLAYDBG_ALWAYS')); raise SystemExit(5)"
    environment.on()
    spoil(environment)

    finished = environment.run("-c", text, "a")

    assert (finished.status, finished.stdout) == (5, b"['-c', 'a'] None\n")
    lines = finished.stderr.decode().splitlines()
    assert len(lines) == 1 and lines[0].startswith("replaydbg: this run is not recorded: ") and message in lines[0]


def test_a_program_from_a_pipe_runs_plainly(environment: Environment) -> None:
    environment.on()
    words = [environment.python, "/dev/stdin"]

    finished = subprocess.run(words, input=b"print(7)", env=environment.env, capture_output=True, check=True)

    reason = b"Cannot record a program from a pipe ('/dev/stdin')"
    assert (finished.stdout, finished.stderr) == (b"7\n", b"replaydbg: this run is not recorded: %s.\n" % reason)


def test_a_full_disk_lets_the_program_run(environment: Environment) -> None:
    """A limit of sizes is met where a full disk would be: when the space for the log is reserved."""
    environment.on()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731 - between fork and exec

    finished = subprocess.run(
        [environment.python, "-c", "print(7)"], env=environment.env, preexec_fn=limit, capture_output=True, check=True
    )

    assert finished.stdout == b"7\n"
    assert finished.stderr.decode().startswith("replaydbg: this run is not recorded: ")
    assert finished.stderr.count(b"\n") == 1 and environment.rows() == []


def test_a_store_that_is_read_only_lets_the_program_run(environment: Environment) -> None:
    environment.on()
    line = start_line(Ring("/proc/nowhere", runs=1))
    environment.file.write_text(line)

    finished = environment.run("-c", "print(7)")

    assert (finished.status, finished.stdout) == (0, b"7\n")
    assert finished.stderr.startswith(b"replaydbg: this run is not recorded: /proc/nowhere")


def test_reading_the_file_once_more_starts_nothing(environment: Environment) -> None:
    """A program may read the files of its environment again, and begin another interpreter in its process."""
    environment.on()
    text = """import site
print("begin", flush=True)
site.addsitedir(site.getsitepackages()[0])
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
interpreters.run_string(interpreters.create(), "print('inside', flush=True)")
print("end")
"""
    for name in ("off", ""):
        finished = environment.run("-c", text, REPLAYDBG_ALWAYS=name)
        assert finished.stdout == b"begin\ninside\nend\n", finished.stderr.decode()


def test_a_damaged_file_is_not_read_as_ours(environment: Environment) -> None:
    for text in ("", "a\nb\nc", "#\n#\n# {}", "#\n#\n# []", "#\n#\n# 7"):
        environment.file.write_text(text)
        assert read_ring(environment.file) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["on", "nowhere"], "is not a virtual environment: it has no file pyvenv.cfg"),
        (["on", ""], "is not a virtual environment"),
        (["on", "venv", "--runs", "0"], "--runs must be from 1 to"),
        (["on", "venv", "--megabytes", "-1"], "--megabytes must be from 1 to"),
        (["off", "venv", "--runs", "3"], "need `always on`"),
        (["on", "venv", "--runs", "3", "--megabytes", "3"], "not allowed with"),
        (["maybe", "venv"], "invalid choice"),
    ],
)
def test_bad_input_is_refused(words: list[str], message: str, environment: Environment) -> None:
    finished = environment.replaydbg("always", *words)

    assert finished.status == 2 and message in finished.stderr.decode()
    assert not environment.file.exists()


def test_doctor_names_the_environment_that_is_on(environment: Environment) -> None:
    environment.env["VIRTUAL_ENV"] = str(environment.directory)
    assert f"on in {environment.directory}" not in environment.replaydbg("doctor").stdout.decode()
    environment.on()

    assert f"on in {environment.directory}" in environment.replaydbg("doctor").stdout.decode()
