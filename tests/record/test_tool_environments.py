"""replaydbg in an environment of its own records the programs of other environments, with their interpreters.

Only the core comes into such a program: it prints what it finds, and must print the same unrecorded.
"""

import json
import os
import sys
import venv
from pathlib import Path

import pytest

from replaydbg.errors import UsageError
from replaydbg.launch import program_python
from replaydbg.launch.program_python import split_command
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow

SHOP = """\
import random, subprocess, sys
def main():
    ours = [name for name in sys.modules if "replaydbg" in name]
    print(sys.executable, sys.prefix, sys.path, sys.argv, sys.flags, ours)
    code = "import sys; print(sys.executable, sys.prefix, sys.path, 'replaydbg' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    if "-r" in sys.argv:
        print(random.random())
"""
COMMAND = Path(sys.executable).with_name("replaydbg")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment of a program, which does not have replaydbg: its directory."""
    place = tmp_path_factory.mktemp("program") / "env"
    venv.create(place, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    package = place / "lib" / version / "site-packages" / "shop"
    package.mkdir()
    (package / "__init__.py").write_text(SHOP)
    (package / "__main__.py").write_text("from shop import main\nmain()\n")
    script = place / "bin" / "shop"
    script.write_text(f"#!{place}/bin/python\nimport sys\nfrom shop import main\nif __name__ == '__main__': main()\n")
    script.chmod(0o755)
    return place


def in_tool(words: list[str], folder: Path, **variables: str) -> Outcome:
    """Run the command `replaydbg` of this environment."""
    env = {**passed_on(), "PATH": os.defpath, "REPLAYDBG_STORE": str(folder / "store"), **variables}
    return run([sys.executable, str(COMMAND), *words], cwd=folder, env=env)


def plainly(words: list[str], folder: Path, **variables: str) -> Outcome:
    return run(words, cwd=folder, env={**passed_on(), "PATH": os.defpath, **variables})


def check(plain: list[str], recorded: list[str], folder: Path, **variables: str) -> None:
    """Check that the program finds the same, recorded and unrecorded, and that three replays are equal."""
    expected = plainly(plain, folder, **variables)
    assert expected.status == 0, expected.stderr
    found = in_tool(["record", "-q", "-o", "r", *recorded], folder, **variables)
    assert (found.stdout, found.stderr, found.status) == (expected.stdout, expected.stderr, 0)
    drawn = in_tool(["record", "-q", "-o", "drawn", *recorded, "-r"], folder, **variables)
    assert drawn.status == 0, drawn.stderr
    for _ in range(3):
        replayed = in_tool(["replay", "-q", "drawn.rdbg"], folder, **variables)
        assert (replayed.stdout, replayed.stderr, replayed.status) == (drawn.stdout, drawn.stderr, 0)


def test_an_interpreter_in_the_command_line(program: Path, tmp_path: Path) -> None:
    words = [f"{program}/bin/python", "-X", "dev", "-m", "shop"]
    check(words, words, tmp_path)


def test_a_console_script_on_the_path(program: Path, tmp_path: Path) -> None:
    check(["shop"], ["--", "shop"], tmp_path, PATH=f"{program}/bin:{os.defpath}")


def test_a_console_script_by_its_path(program: Path, tmp_path: Path) -> None:
    check([f"{program}/bin/shop"], [f"{program}/bin/shop"], tmp_path)


def test_the_activated_environment(program: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import shop\nshop.main()\n")
    check([f"{program}/bin/python", "own.py"], ["own.py"], tmp_path, VIRTUAL_ENV=str(program))


def test_the_first_word_is_the_one_that_was_typed(program: Path, tmp_path: Path) -> None:
    """`sys.orig_argv` has the word by which the interpreter was called."""
    words = ["env/bin/python", "-c", "import sys; print(sys.orig_argv)"]
    (tmp_path / "env").symlink_to(program)
    assert in_tool(["record", "-q", *words], tmp_path).stdout == plainly(words, tmp_path).stdout


def test_this_python_by_its_name_is_this_python(tmp_path: Path) -> None:
    started = split_command([sys.executable, "-O", "prog.py", "-x"])
    assert started.python.facts["executable"] == sys.executable
    assert (started.options, started.words) == (["-O"], ["prog.py", "-x"])


def test_a_module_of_replaydbg_names_its_own_python(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m replaydbg` says which Python it is about, whatever is activated."""
    monkeypatch.setenv("VIRTUAL_ENV", str(program))
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-X", "dev", "-m", "replaydbg", "record", "prog.py"])
    started = split_command(["prog.py"])
    assert (started.python.executable, started.options) == (sys.executable, ["-X", "dev"])


def test_a_file_that_is_called_python_is_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("python").mkdir()
    assert split_command(["python", "x"]).words == ["python", "x"]


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ("exit 3", r"does not say which Python it is \(.*exit status 3"),
        ("echo 'pyenv: not found' >&2; exit 127", r"does not say which Python it is \(pyenv: not found\)"),
        ("echo surprise", r"does not say which Python it is \("),
        ("sleep 60", r"does not say which Python it is \(.*timed out"),
    ],
)
def test_an_interpreter_that_does_not_answer(
    says: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_python, "_PATIENCE", 2.0)
    other = tmp_path / "python3"
    other.write_text(f"#!/bin/sh\n{says}\n")
    other.chmod(0o755)
    with pytest.raises(UsageError, match=reason):
        split_command([str(other), "prog.py"])


@pytest.mark.parametrize(
    ("version", "soabi", "reason"),
    [
        (
            "3.99.1",
            "cpython-399-x86_64-linux-gnu",
            r"it is Python 3\.99\.1, and replaydbg is installed in a Python 3\.",
        ),
        (sys.version.split()[0], "cpython-another", r"\(cpython-another\), and replaydbg is installed in a Python"),
    ],
)
def test_another_version_or_build(version: str, soabi: str, reason: str, tmp_path: Path) -> None:
    other = tmp_path / "python3"
    facts = {"version": version, "soabi": soabi, "executable": str(other)}
    other.write_text(f"#!/bin/sh\necho '{json.dumps([facts, []])}'\n")
    other.chmod(0o755)
    with pytest.raises(UsageError, match=reason):
        split_command([str(other), "prog.py"])


def test_gates_of_the_programs_packages(program: Path, tmp_path: Path) -> None:
    """A package of the program's environment declares functions that reach the outside, see `replaydbg.gates`."""
    packages = next((program / "lib").glob("python3*")) / "site-packages"
    (packages / "sensor_rows.py").write_text(
        "from replaydbg.gates.row import rows\nROWS = rows('_statistics', '_normal_dist_inv_cdf', handler='stops')\n"
    )
    facts = packages / "sensor-1.dist-info"
    facts.mkdir()
    (facts / "entry_points.txt").write_text("[replaydbg.gates]\nsensor = sensor_rows:ROWS\n")

    words = [f"{program}/bin/python", "-c", "import _statistics as s; print(s._normal_dist_inv_cdf(0.5, 0, 1))"]
    recorded = in_tool(["record", "-o", "r", "--children=none", *words], tmp_path)

    assert (recorded.stdout, recorded.status) == ("0.0\n", 0)
    assert "_statistics._normal_dist_inv_cdf" in recorded.stderr
