"""`replaydbg resume --images`: CRIU saves the standby, and the program goes on from there when all has been killed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from replaydbg.resume.images.criu import CriuFailed, check_criu
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until

_CRIU = os.environ.get("TEST_CRIU") or "criu"
"""Tests do not see the variables of the tool, such as REPLAYDBG_CRIU."""
_TIMEOUT = 60.0
_LINES = 40
# It prints, computes and writes; it waits for the file `go` at its middle, and for `more` a line before.
_PROGRAM = f"""import os, threading, time
lock, beside = threading.Lock(), []
def count():
    for _ in range(50):
        with lock:
            beside.append(time.time())
threading.Thread(target=count).start()
with open("out", "a") as file:
    for line in range({_LINES}):
        total = sum(each * each for each in range(20_000))
        with lock:
            file.write(f"{{line}} {{total}}\\n")
            file.flush()
        if line == {_LINES // 2}:
            print("half", os.getpid(), flush=True)
            while not os.path.exists("go"):
                time.sleep(0.005)
print("done", len(beside) == 50)
"""


def _missing() -> str:
    """Return why no image can be made here; empty: it can."""
    try:
        check_criu(_CRIU)
    except CriuFailed as error:
        return str(error)
    return ""


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(_missing()), reason=_missing() or "CRIU can be used"),
]


def _env(folder: Path, criu: Path | None) -> dict[str, str]:
    env = dict(without_steering(os.environ)) | {
        "REPLAYDBG_STORE": str(folder / "store"),
        "REPLAYDBG_CRIU": _CRIU,
    }
    return env if criu is None else env | {"REPLAYDBG_CRIU": str(criu)}


def _replaydbg(folder: Path, *words: str, criu: Path | None = None) -> Finished:
    return run([sys.executable, "-m", "replaydbg", *words], cwd=folder, env=_env(folder, criu), timeout=_TIMEOUT)


@contextmanager
def recorded(folder: Path) -> Iterator[int]:
    """Record the program in the block, up to its middle; yield its process id. Its recording is sealed afterwards."""
    (folder / "program.py").write_text(_PROGRAM)
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "--children=none", "-o", "one.rdbg", "program.py"]
    with subprocess.Popen(
        command, cwd=folder, env=_env(folder, None), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as recorder:
        assert recorder.stdout is not None
        program = int(recorder.stdout.readline().split()[1])
        try:
            yield program
        finally:
            with suppress(ProcessLookupError):  # the test has killed it
                os.kill(program, signal.SIGKILL)
            recorder.wait(_TIMEOUT)


@contextmanager
def standing_by(folder: Path, *, criu: Path | None = None, images: str = "images") -> Iterator[subprocess.Popen[bytes]]:
    """Run a standby that makes images in the block; what it prints is in the files `printed` and `said`."""
    words = ["resume", "one.rdbg", "--follow", "--in-flight=repeat", "-o", "two.rdbg", "--images", images]
    with (
        (folder / "printed").open("wb") as printed,
        (folder / "said").open("wb") as said,
        subprocess.Popen(
            [sys.executable, "-m", "replaydbg", *words, "--image-every", "0.01"],
            cwd=folder,
            env=_env(folder, criu),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=said,
        ) as standby,
    ):
        try:
            yield standby
        finally:
            standby.kill()


def wait_for(folder: Path, text: str, standby: subprocess.Popen[bytes]) -> None:
    """Wait until the standby has printed `text`."""

    def said() -> str:
        return (folder / "said").read_text()

    wait_until(lambda: text in said() or standby.poll() is not None, _TIMEOUT, message=said)
    assert text in said()


def _with_an_image(folder: Path) -> None:
    """Record the program, make an image of its standby, and kill all of them."""
    with recorded(folder), standing_by(folder) as standby:
        wait_for(folder, "image at event", standby)
    shutil.rmtree(folder / "two.rdbg-live", ignore_errors=True)
    (folder / "go").touch()


def _resume(folder: Path, *, criu: Path | None = None) -> Finished:
    words = ("resume", "one.rdbg", "--images", "images", "--in-flight=repeat", "-o", "three.rdbg")
    return _replaydbg(folder, *words, criu=criu)


def _check(folder: Path, printed: bytes, recording: str = "three.rdbg") -> None:
    """Assert that nothing was lost or doubled, and that the new recording replays."""
    total = sum(each * each for each in range(20_000))
    assert printed.splitlines()[-1] == b"done True"
    assert (folder / "out").read_text() == "".join(f"{line} {total}\n" for line in range(_LINES))
    replayed = _replaydbg(folder, "replay", "-q", recording)
    assert replayed.stdout.splitlines()[-1] == b"done True", replayed.stderr


def _criu_that(folder: Path, at_dump: str) -> Path:
    """Return a program that does something else in place of a dump, and is CRIU otherwise."""
    script = folder / "criu"
    script.write_text(f'#!/bin/sh\nif [ "$1" = dump ]; then {at_dump}; fi\nexec "{_CRIU}" "$@"\n')
    script.chmod(0o755)
    return script


def test_a_program_goes_on_from_an_image_of_its_standby(tmp_path: Path) -> None:
    _with_an_image(tmp_path)

    resumed = _resume(tmp_path)

    assert b"going on from the image at event" in resumed.stderr
    assert b"from the beginning" not in resumed.stderr, resumed.stderr.decode()
    _check(tmp_path, resumed.stdout)


def test_a_standby_of_which_images_are_made_takes_over(tmp_path: Path) -> None:
    with recorded(tmp_path) as program, standing_by(tmp_path) as standby:
        wait_for(tmp_path, "image at event", standby)
        os.kill(program, signal.SIGKILL)
        wait_for(tmp_path, "live after event", standby)
        (tmp_path / "go").touch()
        status = standby.wait(_TIMEOUT)

    assert status == 0
    _check(tmp_path, (tmp_path / "printed").read_bytes(), "two.rdbg")


def test_a_damaged_image_is_not_used(tmp_path: Path) -> None:
    _with_an_image(tmp_path)
    pages = max((tmp_path / "images").glob("image-*/pages-*.img"))
    with pages.open("r+b") as file:
        file.seek(pages.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))

    resumed = _resume(tmp_path)

    assert re.search(
        rb"no image is used: its file pages-[0-9]+.img is damaged; the program is replayed from the begi",
        resumed.stderr,
    )
    _check(tmp_path, resumed.stdout)


def test_an_image_without_a_description_is_left_out_with_a_reason(tmp_path: Path) -> None:
    _with_an_image(tmp_path)
    (tmp_path / "images" / "image-999999").mkdir()
    (tmp_path / "images" / "image-999999" / "image.json").write_text("{}")

    resumed = _resume(tmp_path)

    assert b"image-999999 is left out: its description is damaged" in resumed.stderr
    assert b"going on from the image at event" in resumed.stderr
    assert re.search(rb"recovery .* after the image at event", resumed.stderr)
    _check(tmp_path, resumed.stdout)


def test_an_image_that_was_not_completed_is_not_used_and_removed(tmp_path: Path) -> None:
    _with_an_image(tmp_path)
    image = next((tmp_path / "images").glob("image-*"))
    partial = image.with_name("image-99.partial")
    image.rename(partial)

    resumed = _resume(tmp_path)

    assert b"there is no complete image in" in resumed.stderr
    _check(tmp_path, resumed.stdout)


def test_an_image_of_another_recording_is_not_used(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    _with_an_image(other)
    with recorded(tmp_path):
        pass
    (tmp_path / "go").touch()
    shutil.copytree(other / "images", tmp_path / "images", symlinks=True)

    resumed = _resume(tmp_path)

    assert b"does not fit: it is of another recording" in resumed.stderr
    _check(tmp_path, resumed.stdout)


def test_the_newest_image_alone_is_kept(tmp_path: Path) -> None:
    with recorded(tmp_path), standing_by(tmp_path) as standby:
        wait_for(tmp_path, "image at event", standby)
        (tmp_path / "go").touch()  # there are more events now
        standby.wait(_TIMEOUT)
        left = sorted(each.name for each in (tmp_path / "images").iterdir())

    assert len(left) == 1, left
    assert re.fullmatch("image-[0-9]+", left[0])


def test_the_plan_has_the_images(tmp_path: Path) -> None:
    _with_an_image(tmp_path)

    plan = _replaydbg(tmp_path, "resume", "one.rdbg", "--plan", "--images", "images")
    as_json = _replaydbg(tmp_path, "resume", "one.rdbg", "--plan", "--images", "images", "--json")

    assert re.search(rb"images +\S+/image-[0-9]+: event [0-9,]+, [0-9.]+ MiB", plan.stdout), plan
    assert re.search(rb"events? after the image at event [0-9,]+", plan.stdout)
    assert b"log size" in plan.stdout
    (image,) = json.loads(as_json.stdout)["images"]
    assert image["event"] > 0
    assert image["unusable"] is None


def test_a_dump_that_is_killed_costs_the_standby_nothing(tmp_path: Path) -> None:
    criu = _criu_that(tmp_path, f'"{_CRIU}" "$@" & sleep 0.03; kill -9 $!; kill -9 $$')
    with recorded(tmp_path) as program, standing_by(tmp_path, criu=criu) as standby:
        wait_for(tmp_path, "no image could be made: CRIU was ended by SIGKILL", standby)
        os.kill(program, signal.SIGKILL)
        wait_for(tmp_path, "live after event", standby)
        (tmp_path / "go").touch()
        status = standby.wait(_TIMEOUT)

    assert status == 0
    assert not [each for each in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path).encode() in _read(each)]
    _check(tmp_path, (tmp_path / "printed").read_bytes(), "two.rdbg")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended
        return b""


def test_a_full_disk_costs_the_standby_nothing(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir(mode=0o700)
    mounted = run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(small)],
        cwd=tmp_path,
        env=dict(os.environ),
        timeout=_TIMEOUT,
    )
    if mounted.status != 0:
        pytest.skip("no file system can be mounted here")
    try:
        with recorded(tmp_path) as program, standing_by(tmp_path, images="small") as standby:
            wait_for(tmp_path, "no image could be made", standby)
            os.kill(program, signal.SIGKILL)
            wait_for(tmp_path, "live after event", standby)
            (tmp_path / "go").touch()
            status = standby.wait(_TIMEOUT)
    finally:
        run(["umount", str(small)], cwd=tmp_path, env=dict(os.environ), timeout=_TIMEOUT)

    assert "No space left" in (tmp_path / "said").read_text()
    assert status == 0
    _check(tmp_path, (tmp_path / "printed").read_bytes(), "two.rdbg")
