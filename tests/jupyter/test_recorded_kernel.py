"""A recorded kernel of Jupyter: its cells are marked, earlier ones can be asked about, and its recording replays."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jupyter.recorded_kernel import CELL_SECONDS, RecordedKernel, recorded_kernel

pytest.importorskip("ipykernel", reason="only `tox -e jupyter` installs Jupyter's packages")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    # jupyter_client leaves some sockets to the collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordedKernel]:
    with recorded_kernel(tmp_path, monkeypatch) as found:
        yield found


def assert_replays(recording: Path) -> None:
    command = [sys.executable, "-m", "replaydbg", "replay", "-q", str(recording)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CELL_SECONDS, check=False)
    assert done.returncode == 0, done.stderr


def test_a_kernel_replays_what_its_cells_did(kernel: RecordedKernel) -> None:
    assert kernel.run("x = 1 + 1\nx") == "2"
    assert kernel.run("print('hello', x)") == "hello 2\n"
    assert kernel.run("1 / 0") == "ZeroDivisionError"
    assert kernel.run("import asyncio\nawait asyncio.sleep(0.01)\n'awaited'") == "'awaited'"
    threads = "import threading\nfound = []\nt = threading.Thread(target=lambda: found.append(7))\nt.start(); t.join()"
    assert kernel.run(f"{threads}\nfound") == "[7]"
    assert kernel.run("name = input('who? ')\nname", typed="Ada") == "'Ada'"
    assert kernel.run("import random\n0 <= random.random() < 1") == "True"
    # So large that pyzmq does not copy it: libzmq frees it in its own thread, and a thread of Python's hears of it.
    assert len(kernel.run("print('z' * 300_000)")) == 300_001

    seconds = kernel.shut_down()
    recording = kernel.sealed("run-1")

    assert seconds < 4  # else Jupyter would have killed it
    assert "exit code 0" in kernel.asked("info", str(recording))
    assert "libzmq.zmq_msg_recv" in kernel.asked("events", str(recording))
    for _ in range(3):
        assert_replays(recording)


def test_a_cell_asks_about_earlier_ones(kernel: RecordedKernel) -> None:
    kernel.run("total = 0")
    kernel.run("for i in range(5):\n    total += i")
    kernel.run("total = total * 2")

    why = kernel.run("%replaydbg why total")
    logged = kernel.run("%replaydbg log cell 2:2 total + i")
    seen = kernel.run("%replaydbg watch total")
    stood = kernel.run("%replaydbg seek cell 3")
    wrong = kernel.run("%replaydbg why nonesuch")
    usage = kernel.run("%replaydbg dance")
    kernel.shut_down()
    recording = kernel.sealed("run-1")

    assert "-> 1  total = total * 2" in why
    assert "before  10" in why
    assert "after   20" in why
    assert [line.split()[-1] for line in logged.splitlines()] == ["0", "1", "3", "6", "10"]
    assert [line.split()[-1] for line in seen.splitlines()] == ["0", "1", "3", "6", "10", "20"]
    assert "-> 1  total = total * 2" in stood
    assert "no variable nonesuch" in wrong
    assert usage.startswith("usage: %replaydbg QUESTION")
    assert_replays(recording)
    assert "-> 1  total = 0" in kernel.asked("seek", str(recording), "@cell:1")
    assert "-> 1  for i in range(5):" in kernel.asked("seek", str(recording), "@code:range(5)")
    assert "-> 1  total = total * 2" in kernel.asked("seek", str(recording), "@cell:2 end")


def test_an_interrupted_cell_is_replayed(kernel: RecordedKernel) -> None:
    for source in ("import time\nwhile True: time.sleep(0.05)", "n = 0\nwhile True: n += 1"):
        threading.Timer(1, kernel.manager.interrupt_kernel).start()
        assert kernel.run(source) == "KeyboardInterrupt"
    assert kernel.run("n > 0") == "True"

    kernel.shut_down()

    assert_replays(kernel.sealed("run-1"))


def test_a_restarted_kernel_has_a_new_recording(kernel: RecordedKernel) -> None:
    kernel.run("first = 1")
    kernel.restart()
    assert kernel.run("first") == "NameError"
    kernel.shut_down()

    for name in ("run-1", "run-2"):
        assert_replays(kernel.sealed(name))


def test_a_killed_kernel_has_a_recording_up_to_there(kernel: RecordedKernel) -> None:
    kernel.run("values = [1]")
    kernel.run("values.append(2)")
    kernel.run("values")

    kernel.kill()

    assert "run-1" in kernel.asked("ls")
    assert "-> 1  values.append(2)" in kernel.asked("why", "run-1", "values")


def test_a_notebook_runs_in_it(kernel: RecordedKernel, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    from nbclient import NotebookClient

    cells = [nbformat.v4.new_code_cell(source) for source in ("a = 2", "a ** 10")]
    notebook = nbformat.v4.new_notebook(cells=cells)

    NotebookClient(notebook, kernel_name="replaydbg", timeout=CELL_SECONDS).execute(cwd=str(tmp_path))

    assert cells[1].outputs[0]["data"]["text/plain"] == "1024"
    kernel.shut_down()
    assert_replays(kernel.sealed("run-2"))


def test_a_killed_kernel_cannot_be_resumed(kernel: RecordedKernel) -> None:
    kernel.run("value = 1")
    kernel.kill()
    command = [sys.executable, "-m", "replaydbg", "resume", "run-1/1", "--force"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=CELL_SECONDS, check=False)

    assert done.returncode == 2
    assert "ZeroMQ: libzmq.zmq_ctx_new()" in done.stderr
