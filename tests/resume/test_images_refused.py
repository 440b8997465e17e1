"""`replaydbg resume --images` where no image can be made or used: one sentence, and nothing is lost."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from replaydbg.errors import CannotResume
from replaydbg.resume.images.criu import may_save
from replaydbg.resume.images.image_directory import ImageDirectory
from replaydbg.resume.images.image_facts import ImageFacts, LogPrefix, read_facts
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.resume.test_standby import recorded

pytestmark = pytest.mark.slow
_FOLLOW = ("resume", "one.rdbg", "--follow", "--in-flight=repeat", "-o", "two.rdbg")


def _replaydbg(folder: Path, *words: str, criu: str = "/missing/criu") -> Finished:
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store"), "REPLAYDBG_CRIU": criu}
    return run([sys.executable, "-m", "replaydbg", *words], cwd=folder, env=env, timeout=20.0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--images", "images", "--at", "5"), "--images cannot be used with --at"),
        (("--images", "images", "--after-power-loss"), "--images cannot be used with --after-power-loss"),
        (("--images", "images", "--image-every", "5"), "--image-every needs --follow and --images DIR."),
        (
            ("--follow", "--in-flight=skip", "--images", "images", "--image-every", "0"),
            "--image-every must be a number of seconds above 0 (got '0')",
        ),
    ],
    ids=["at", "power", "no-follow", "zero"],
)
def test_options_that_images_cannot_have(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "one.rdbg").touch()

    finished = _replaydbg(tmp_path, "resume", "one.rdbg", *words)

    assert finished.status == 2
    assert sentence in finished.stderr.decode()


def test_a_standby_without_criu_is_refused(tmp_path: Path) -> None:
    with recorded(tmp_path):
        finished = _replaydbg(tmp_path, *_FOLLOW, "--images", "images")

    assert finished.status == 2
    assert "the program '/missing/criu' is not installed (see REPLAYDBG_CRIU)" in finished.stderr.decode()
    assert not (tmp_path / "two.rdbg-live").exists()


@pytest.mark.skipif(not may_save(), reason="the version is looked at only by who may make images")
def test_an_old_criu_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "old-criu"
    old.write_text("#!/bin/sh\necho Version: 3.17.1\n")
    old.chmod(0o755)
    with recorded(tmp_path):
        finished = _replaydbg(tmp_path, *_FOLLOW, "--images", "images", criu=str(old))

    assert finished.status == 2
    assert "has version 3.17, and 4.0 is needed" in finished.stderr.decode()


def test_without_criu_the_program_is_replayed_from_the_beginning(tmp_path: Path) -> None:
    with recorded(tmp_path) as (recorder, program):
        os.kill(program, signal.SIGKILL)
        recorder.wait(20.0)
    (tmp_path / "go").touch()

    resumed = _replaydbg(tmp_path, "resume", "one.rdbg", "--images", "images", "--in-flight=repeat", "-o", "two.rdbg")

    assert "no image is used: the program '/missing/criu' is not installed" in resumed.stderr.decode()
    assert resumed.stdout.endswith(b"done\n")


def test_a_group_has_no_images(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\n")
    recorded = _replaydbg(tmp_path, "record", "-q", "--children=fork", "-o", "group", "program.py")
    assert recorded.status == 0, recorded.stderr

    finished = _replaydbg(tmp_path, "resume", "group", "--images", "images")

    assert finished.status == 2
    assert "--images is for a single process: a group is replayed from the beginning." in finished.stderr.decode()


def test_a_directory_of_images_is_this_users_alone(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    images.chmod(0o777)

    with pytest.raises(CannotResume, match="others can write to the directory of images"):
        ImageDirectory(images, "one.rdbg")


def test_a_file_is_no_directory_of_images(tmp_path: Path) -> None:
    (tmp_path / "images").touch()

    with pytest.raises(CannotResume, match="it is not a directory"):
        ImageDirectory(tmp_path / "images", "one.rdbg")


def test_one_standby_at_a_time_writes_its_images(tmp_path: Path) -> None:
    images = ImageDirectory(tmp_path / "images", "one.rdbg", makes=True)

    with (
        images.held("one.rdbg"),
        pytest.raises(CannotResume, match="another standby writes its images"),
        images.held("one.rdbg"),
    ):
        raise AssertionError("it is held twice")


def test_older_images_are_removed_once_the_new_one_is_complete(tmp_path: Path) -> None:
    images = ImageDirectory(tmp_path / "images", "one.rdbg", makes=True)
    facts = ImageFacts(1, 7, 0, {"log": LogPrefix(64, "")}, {"kernel": "6"}, {"page": "/a"}, (), {})
    first = images.begin()
    images.complete(first, facts)
    second = images.begin()

    before = [each.number for each in images.images()[0]]
    images.complete(second, facts)
    after = [each.number for each in images.images()[0]]

    assert (before, after) == ([1], [2])


@pytest.mark.parametrize(("text", "reason"), [(None, "cannot be read: No such file or directory"), ("{", "is damaged")])
def test_an_image_whose_description_cannot_be_read_is_left_out_with_a_reason(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    with recorded(tmp_path) as (recorder, program):
        os.kill(program, signal.SIGKILL)
        recorder.wait(20.0)
    (tmp_path / "images" / "image-3").mkdir(parents=True, mode=0o700)
    (tmp_path / "images").chmod(0o700)
    if text is not None:
        (tmp_path / "images" / "image-3" / "image.json").write_text(text)

    plan = _replaydbg(tmp_path, "resume", "one.rdbg", "--plan", "--images", "images")
    as_json = _replaydbg(tmp_path, "resume", "one.rdbg", "--plan", "--images", "images", "--json")

    assert f"image-3: not usable: its description {reason}" in plan.stdout.decode(), plan
    (image,) = json.loads(as_json.stdout)["images"]
    assert (image["event"], image["bytes"], image["unusable"]) == (None, 0, f"its description {reason}")


def test_facts_of_an_image_are_read_as_they_were_written() -> None:
    facts = ImageFacts(
        1, 7, 5, {"log": LogPrefix(64, "ab")}, {"kernel": "6"}, {"page": "/a"}, ("image-1",), {"x.img": "0"}
    )

    assert read_facts(facts.as_json()) == facts


@pytest.mark.parametrize("text", ["{}", "[]", "7", "nothing"])
def test_other_files_are_not_taken_for_facts(text: str) -> None:
    with pytest.raises(ValueError, match=r"description of an image|Expecting value"):
        read_facts(text)
