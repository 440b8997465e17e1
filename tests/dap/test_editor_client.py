"""The client with which VS Code's adapters are tested sends every request, and VS Code's packager takes the extension.

Both come from npm: `tox -e editors`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from replaydbg.dap.requests.request_table import HANDLERS
from tests.harness.recording import record_file
from tests.harness.typed import FAILS, TRAVEL

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
SUITE = Path(__file__).with_name("editor_client") / "requests.test.cjs"
ALWAYS = ("initialize", "launch", "attach", "disconnect", "terminate", "cancel")

has_packages = pytest.mark.skipif(
    "TEST_NODE_MODULES" not in os.environ, reason="`tox -e editors` installs the packages from npm"
)


@has_packages
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_client_of_vs_codes_own_tests_sends_every_request(tmp_path: Path) -> None:
    gone = tmp_path / "gone.py"
    gone.write_text("raise ValueError('gone')\n")
    record_file(gone, tmp_path, status=1)
    gone.unlink()
    environ = {
        **os.environ,
        "NODE_PATH": os.environ["TEST_NODE_MODULES"],
        "PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "RECORDING": str(record_file(FAILS, tmp_path, status=1)),
        "LANES": str(record_file(TRAVEL / "lanes_and_tasks.py", tmp_path)),
        "FIXTURE": str(FAILS),
        "EXTENSION": str(EXTENSION),
        "WORK": str(tmp_path),
        "REPLAYDBG_STORE": str(tmp_path / "store"),
        "REQUESTS": " ".join([*ALWAYS, *HANDLERS]),
    }

    found = subprocess.run(
        ["node", "--test", "--test-concurrency=1", str(SUITE)],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert found.returncode == 0, found.stdout + found.stderr


@has_packages
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_packager_takes_the_extension(tmp_path: Path) -> None:
    packager = Path(os.environ["TEST_NODE_MODULES"]) / "@vscode" / "vsce" / "vsce"
    target = tmp_path / "replaydbg.vsix"

    command = ["node", str(packager), "package", "--no-dependencies", "--allow-missing-repository", "-o", str(target)]
    subprocess.run(command, cwd=EXTENSION, capture_output=True, text=True, timeout=200, check=True)

    with zipfile.ZipFile(target) as package:
        names = {each.removeprefix("extension/") for each in package.namelist()}
    assert {"package.json", "extension.js", "readme.md"} <= {each.lower() for each in names}


def test_the_extension_names_the_attributes_that_the_server_takes() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    (debugger,) = manifest["contributes"]["debuggers"]
    sources = [ROOT / "replaydbg" / "dap" / name for name in ("requested_recording.py", "program_recorder.py")]
    text = "\n".join(each.read_text(encoding="utf-8") for each in sources)

    named = {name for each in debugger["configurationAttributes"].values() for name in each["properties"]}

    assert named == set(
        re.findall(r'(?:arguments|given)\.(?:needed_)?(?:text|flag|texts|mapping|objects)\("(\w+)"', text)
    )
    assert (debugger["type"], debugger["languages"]) == ("replaydbg", ["python"])
