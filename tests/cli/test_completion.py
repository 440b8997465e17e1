"""Completion by shells: the scripts of all shells, and what a real bash completes by its own."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.cli.machine.completion import SHELLS, all_commands
from replaydbg.cli.main import COMMANDS, main
from tests.harness.surroundings import without_steering

# Runs the function that the script has registered, as bash does for the words of a command line.
_COMPLETES = """
eval "$(replaydbg completion bash)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
function=$(complete -p replaydbg | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function replaydbg "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0

    script = capsys.readouterr().out
    assert "snapshots" in script
    assert "completion --recordings" in script


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    documented = set(re.findall(r"^  (?:-\w(?: \w+)?, )?(--[a-z-]+)", capsys.readouterr().out, re.M))

    (parts,) = (each for each in all_commands()._actions if isinstance(each, argparse._SubParsersAction))
    known = {option for action in parts.choices[name]._actions for option in action.option_strings}

    assert documented <= known


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sna"], {"snapshots"}),
        (["bisect", "rec"], {"recordings"}),
        (["resume", "--after"], {"--after-power-loss"}),
        (["info", "ord"], {"orders.rdbg"}),
        (["info", ""], {"latest", "orders.rdbg", "run-1"}),
        (["record", "--children", "py"], {"python"}),
        (["order", "run-1", "1@3", "run"], set()),
    ],
)
def test_bash_completes(words: list[str], expected: set[str], tmp_path: Path) -> None:
    if (bash := shutil.which("bash")) is None:
        pytest.skip("bash is not installed")
    store = tmp_path / "store"
    store.mkdir()
    (store / "run-1.rdbg").touch()
    (tmp_path / "orders.rdbg").touch()
    (tmp_path / "$(touch made).rdbg").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "replaydbg").write_text(f'#!/bin/sh\nexec {sys.executable} -m replaydbg "$@"\n')
    (tmp_path / "bin" / "replaydbg").chmod(0o755)
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(store), "HOME": str(tmp_path)}
    env["PATH"] = f"{tmp_path / 'bin'}:{env['PATH']}"

    done = subprocess.run(
        [bash, "-c", _COMPLETES, "bash", "replaydbg", *words],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "no completion specification" not in done.stderr
    found = set(done.stdout.split("\n")) - {""}
    assert {each for each in found if not each.startswith("-") or words[-1].startswith("-")} == expected, done.stderr
    assert not (tmp_path / "made").exists()
