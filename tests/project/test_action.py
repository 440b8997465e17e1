"""The GitHub action and the release workflow: the steps of the action are run in a real shell."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from tests.harness.replays import passed_on

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
FORKS = "import os, sys\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\nsys.exit(3)\n"


class Runner:
    """A runner of actions: the files by which steps report, and a directory in which replaydbg is installed already."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("output", "summary"):
            (folder / name).touch()
        (folder / "replaydbg").symlink_to(sys.prefix)

    def run(self, name: str, **inputs: str) -> "subprocess.CompletedProcess[str]":
        """Run the step `name`, with the expressions in it replaced."""
        step = next(each for each in ACTION["runs"]["steps"] if each["name"] == name)
        given = {key: each.get("default", "") for key, each in ACTION["inputs"].items()} | inputs
        values = {f"inputs.{key}": value for key, value in given.items()}
        values |= {f"steps.record.outputs.{key}": value for key, value in self.outputs().items()}
        variables = {key: values[text.strip("${} ")] for key, text in step["env"].items()}
        return self.command(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], variables)

    def command(
        self, words: list[str], variables: Mapping[str, str] = MappingProxyType({}), place: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command with what a runner gives it, in `place` or the runner's directory."""
        given = {
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "PATH": f"{sys.prefix}/bin:{os.defpath}",
            "HOME": str(self.folder),
        }
        return subprocess.run(
            words, cwd=place or self.folder, env={**passed_on(), **given, **variables}, capture_output=True, text=True,
            timeout=100, check=False,
        )  # fmt: skip

    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in (self.folder / "output").read_text().splitlines())


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_a_failing_program_leaves_one_file(runner: Runner) -> None:
    recorded = runner.run("record", run="python -c 'import sys; sys.exit(\"a b\")'")

    assert (recorded.returncode, recorded.stderr) == (0, "a b\n")
    assert runner.outputs()["exit-code"] == "1"
    replayed = runner.command([sys.executable, "-m", "replaydbg", "replay", runner.outputs()["recording"]])
    assert (replayed.returncode, replayed.stderr) == (1, "a b\n")
    assert "replaydbg replay recording.rdbg" in (runner.folder / "summary").read_text()
    assert runner.run("end as the program did").returncode == 1


def test_a_failing_program_with_children_leaves_one_file(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "forks.py").write_text(FORKS)

    runner.run("record", run="python forks.py")

    command = next(line for line in (tmp_path / "summary").read_text().splitlines() if "unpack" in line)
    words = ["sh", "-c", command.replace("replaydbg ", f"{sys.executable} -m replaydbg ")]
    done = runner.command(words, place=Path(runner.outputs()["recording"]).parent)
    assert done.returncode == 3, done.stderr


def test_a_passing_program_leaves_nothing(runner: Runner) -> None:
    recorded = runner.run("record", run="python -c 'print(1)'")

    assert (recorded.stdout, runner.outputs()) == ("1\n", {"exit-code": "0"})
    assert runner.run("end as the program did").returncode == 0


def test_a_passing_program_can_be_kept(runner: Runner) -> None:
    runner.run("record", run="python -c 'print(1)'", keep="always", options="--children=none --max-size 1G")
    assert Path(runner.outputs()["recording"]).is_file()


def test_a_program_that_is_not_there_fails(runner: Runner) -> None:
    recorded = runner.run("record", run="no-such-program")
    assert "No file and no command 'no-such-program' to record." in recorded.stderr
    assert runner.run("end as the program did").returncode == 2


def test_every_expression_names_something() -> None:
    """GitHub replaces an unknown name by nothing."""
    text = (ROOT / "action.yml").read_text()
    outputs = {"exit-code", "recording"}
    for part in text.split("${{")[1:]:
        kind, _, name = part.partition("}}")[0].strip().rpartition(".")
        assert (kind == "inputs" and name in ACTION["inputs"]) or (kind == "steps.record.outputs" and name in outputs)


def test_every_job_of_a_release_has_its_parts() -> None:
    workflow: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    jobs = workflow["jobs"]
    needed = jobs["publish"]["needs"]
    assert set(needed) == set(jobs) - {"publish"}
    environments = (ROOT / "tox.ini").read_text()
    for words in (word for job in jobs.values() for step in job["steps"] for word in step.get("run", "").split("&&")):
        if "tox -e" in words:
            assert f"[testenv:{words.split('-e')[1].split()[0]}]" in environments
