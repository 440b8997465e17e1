"""Workflows of GitHub Actions and container files in pages: their steps are run, except those that install something.

GitHub's own actions are not run, but an artifact must have files, and a download brings them.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from typing import Any

import yaml

from tests.pages.blocks import ROOT, Block
from tests.pages.shell import Shell

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
INPUTS = {
    "actions/cache/restore": {"path", "key", "restore-keys"},
    "actions/cache/save": {"path", "key"},
    "actions/checkout": {"fetch-depth"},
    "actions/download-artifact": {"name", "path"},
    "actions/setup-python": {"python-version"},
    "actions/upload-artifact": {"name", "path"},
    "OWNER/replaydbg": set(ACTION["inputs"]),
}
"""The actions that pages use, and those of their inputs that they may use."""
_INSTALLS = re.compile(r"(python3? -m )?pip install ")


def run(block: Block, shell: Shell) -> None:
    """Run a workflow, or the steps of one."""
    read = yaml.safe_load(block.text)
    jobs = [job["steps"] for job in read["jobs"].values()] if isinstance(read, dict) else [read]
    statuses: set[int] = set()
    artifacts: dict[str, str] = {}
    for steps in jobs:
        for step in steps:
            if "run" in step:
                statuses.add(_run_step(step["run"], shell))
            else:
                _use(step, shell, artifacts, statuses)
    wanted = {int(each) for each in (block.value("exits") or "").split()}
    assert statuses - {0} == wanted, f"exit codes {sorted(statuses)}"


def _run_step(command: str, shell: Shell) -> int:
    if _INSTALLS.match(command):
        return 0
    summary = shell.top / "summary.md"
    done = shell.run(f"export GITHUB_STEP_SUMMARY={summary} GITHUB_RUN_ID=1; set -eo pipefail\n{command}")
    assert done.status in (0, 1), f"{command}\n{done.output}"
    return done.status


def _use(step: dict[str, Any], shell: Shell, artifacts: dict[str, str], statuses: set[int]) -> None:
    name, given = step["uses"].partition("@")[0], step.get("with", {})
    assert set(given) <= INPUTS[name], f"{name} has no input {set(given) - INPUTS[name]}"
    if name == "OWNER/replaydbg":
        options = given.get("options", ACTION["inputs"]["options"]["default"])
        statuses.add(_run_step(f"replaydbg record {options} -- {given['run']}", shell))
    elif name == "actions/upload-artifact":
        assert list(shell.work.glob(given["path"])), f"there is no {given['path']} to upload"
        artifacts[given["name"]] = given["path"]
    elif name == "actions/download-artifact":
        shutil.copytree(shell.work / artifacts[given["name"]], shell.work / given["path"])


def run_image(block: Block, shell: Shell) -> None:
    """Run the entry point of a container file with its variables; its volumes are directories below the page's own."""
    entry: list[str] = []
    for line in block.text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "ENV":
            name, _, value = rest.partition("=")
            shell.environment[name] = f"{shell.work}{value}"
        elif word == "VOLUME":
            (shell.work / rest.lstrip("/")).mkdir(exist_ok=True)
        elif word == "ENTRYPOINT":
            entry = json.loads(rest)
        else:
            assert word in ("FROM", "RUN", "WORKDIR", "COPY", "#"), line
    assert entry, "there is no entry point"
    done = shell.run(shlex.join(entry))
    wanted = int(block.value("exits") or 0)
    assert done.status == wanted, f"exit code {done.status}\n{done.output}"
