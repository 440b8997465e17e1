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
from replaydbg.log.reader import open_recording
from replaydbg.replay.find_python import find_python
from tests.harness.history import Change, make_history
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
    # Last on the path, as a directory of the user's for such commands is.
    env["PATH"] = f"{env['PATH']}:{COMMAND.parent}"
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
    started = split_command(["prog.py"], follows_activated=True)
    assert (started.python.executable, started.options) == (sys.executable, ["-X", "dev"])


def test_a_word_without_a_slash_is_looked_for_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a shell: what lies in the working directory may be somebody else's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    Path("python").write_text("#!/bin/sh\ntouch was-executed\n")
    Path("python").chmod(0o755)
    started = split_command(["python", "prog.py"])
    assert (started.python.facts["hexversion"], started.words) == (sys.hexversion, ["prog.py"])
    assert not Path("was-executed").exists()
    assert split_command(["python"]).words == ["python"]


def test_an_environment_with_a_space_in_its_path(program: Path, tmp_path: Path) -> None:
    """The first line of its console scripts cannot name the interpreter: the second one does."""
    (tmp_path / "a b").symlink_to(program.parent)
    place = tmp_path / "a b" / "env" / "bin"
    for name, line in (
        ("quoted", f'"{place}/python" "$0" "$@"'),
        ("beside", '"$(dirname -- "$(realpath -- "$0")")"/\'python\' "$0" "$@"'),
    ):
        script = program / "bin" / name
        script.write_text(f"#!/bin/sh\n'''exec' {line}\n' '''\nfrom shop import main\nmain()\n")
        script.chmod(0o755)
        recorded = in_tool(["record", "-q", "--", name], tmp_path, PATH=f"{place}:{os.defpath}")
        assert recorded.status == 0, recorded.stderr
        assert str(program.parent) in recorded.stdout or str(place.parent) in recorded.stdout


def test_a_link_to_a_console_script(program: Path, tmp_path: Path) -> None:
    """pipx makes such links."""
    (tmp_path / "linked").symlink_to(program / "bin" / "shop")
    recorded = in_tool(["record", "-q", "./linked"], tmp_path)
    assert (recorded.status, str(program) in recorded.stdout) == (0, True), recorded.stderr


def test_options_in_the_first_line_of_a_script(program: Path, tmp_path: Path) -> None:
    script = program / "bin" / "isolated"
    script.write_text(f"#!{program}/bin/python -sP\nimport sys\nprint(sys.flags)\n")
    script.chmod(0o755)
    plain = plainly([str(script)], tmp_path)
    assert in_tool(["record", "-q", str(script)], tmp_path).stdout == plain.stdout


def test_another_name_of_this_python(tmp_path: Path) -> None:
    """The program finds the name by which its interpreter was called."""
    other = str(Path(sys.executable).with_name(f"python3.{sys.version_info.minor}"))
    if not Path(other).exists():
        other = sys.executable
    words = [other, "-c", "import sys; print(sys.executable, sys.orig_argv)"]
    assert in_tool(["record", "-q", *words], tmp_path).stdout == plainly(words, tmp_path).stdout


def test_the_interpreter_takes_a_file_and_no_command(program: Path, tmp_path: Path) -> None:
    refused = in_tool(["record", f"{program}/bin/python", "shop"], tmp_path, PATH=f"{program}/bin")
    assert (refused.status, refused.stdout) == (2, "")
    assert "No file 'shop' to record." in refused.stderr


def test_a_binary_is_no_program(tmp_path: Path) -> None:
    refused = in_tool(["record", "/bin/true"], tmp_path)
    assert (refused.status, "is not a Python script" in refused.stderr) == (2, True), refused


def test_the_demonstration_runs_with_its_own_python(program: Path, tmp_path: Path) -> None:
    shown = in_tool(["demo"], tmp_path, VIRTUAL_ENV=str(program))
    assert shown.status == 0, shown.stderr
    with open_recording(next((tmp_path / "store").rglob("*.rdbg"))) as recording:
        assert recording.header.python.prefix == sys.prefix


def test_a_replay_uses_the_recorded_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two builds of one version may have different modules compiled into them."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    venv.create(tmp_path / "copied", symlinks=False)
    python = tmp_path / "copied" / "bin" / "python"
    words = ["record", "-q", "-o", "r", "--children=none", str(python), "-c", "print(1)"]
    in_tool(words, tmp_path, XDG_DATA_HOME=str(tmp_path / "data"))
    with open_recording(tmp_path / "r.rdbg") as recording:
        recorded = recording.header.python
    assert find_python(str(tmp_path / "r.rdbg"), recorded) == str(python)
    python.unlink()
    assert find_python(str(tmp_path / "r.rdbg"), recorded) == sys.executable


def test_a_search_through_commits(program: Path, tmp_path: Path) -> None:
    body = "import shop, sys\nprint(shop.__name__)\nsys.exit({})\n"
    changes = [
        Change(f"v{number}", {"prog.py": body.format(int(number > 2)) + f"# {number}\n"}) for number in range(1, 5)
    ]
    repository = make_history(tmp_path / "repository", changes)
    words = [f"{program}/bin/python", "prog.py"]
    search = ["bisect", "commits", "--json", "--good", "v1", "--bad", "v4"]
    in_tool(["record", "-q", "--children=none", "-o", str(tmp_path / "r"), *words], repository)

    found = in_tool([*search, "--", *words], repository)
    confirmed = in_tool([*search, "--replay", str(tmp_path / "r.rdbg"), "--confirm", "1"], repository)
    activated = in_tool([*search, "--", "prog.py"], repository, VIRTUAL_ENV=str(program))

    for each in (found, confirmed, activated):
        assert each.status == 1, each
        assert [commit["subject"] for commit in json.loads(each.stdout)["suspects"]] == ["Change v3"]


def test_the_packages_are_those_of_the_program(program: Path, tmp_path: Path) -> None:
    packages = next((program / "lib").glob("python3*")) / "site-packages"
    (packages / "shop-4.2.dist-info").mkdir(exist_ok=True)
    in_tool(["record", "-q", "--children=none", "-o", "r", f"{program}/bin/python", "-m", "shop"], tmp_path)
    with open_recording(tmp_path / "r.rdbg") as recording:
        assert recording.end is not None
        assert recording.end.raw["packages"]["shop"] == "4.2"
        assert "pytest" not in recording.end.raw["packages"]


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ("exit 3", r"did not say which Python it is \(.*exit status 3"),
        ("echo 'pyenv: not found' >&2; exit 127", r"did not say which Python it is \(pyenv: not found\)"),
        ("echo surprise", r"did not say which Python it is \("),
        ("sleep 60", r"did not say within 2 s which Python it is"),
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
    paths = [each.encode().hex() for each in (str(other), str(tmp_path))]
    other.write_text(f"#!/bin/sh\necho '{json.dumps([{'version': version, 'soabi': soabi}, paths])}'\n")
    other.chmod(0o755)
    with pytest.raises(UsageError, match=reason):
        split_command([str(other), "prog.py"])


def test_gates_of_the_programs_packages(program: Path, tmp_path: Path) -> None:
    """A package of the program's environment declares functions that reach the outside, see `replaydbg.gates`."""
    packages = next((program / "lib").glob("python3*")) / "site-packages"
    (packages / "sensor_rows.py").write_text(
        "from replaydbg.gates.row import rows\nROWS = rows('_statistics', '_normal_dist_inv_cdf')\n"
    )
    facts = packages / "sensor-1.dist-info"
    facts.mkdir()
    (facts / "entry_points.txt").write_text("[replaydbg.gates]\nsensor = sensor_rows:ROWS\n")

    words = [f"{program}/bin/python", "-c", "import _statistics as s; print(s._normal_dist_inv_cdf(0.5, 0, 1))"]
    recorded = in_tool(["record", "-q", "-o", "r", "--children=none", *words], tmp_path)
    shown = in_tool(["events", "r.rdbg"], tmp_path)

    assert (recorded.stdout, recorded.status) == ("0.0\n", 0)
    assert "_statistics._normal_dist_inv_cdf(0.5, 0, 1)" in shown.stdout
    for _ in range(3):
        replayed = in_tool(["replay", "-q", "r.rdbg"], tmp_path)
        assert (replayed.stdout, replayed.stderr, replayed.status) == ("0.0\n", "", 0)
    (packages / "sensor_rows.py").write_text("import nothing_of_that_name\n")
    refused = in_tool(["record", *words], tmp_path)
    assert (refused.status, refused.stderr.count("\n")) == (2, 1), refused
    assert "The gate rows of sensor_rows:ROWS cannot be imported" in refused.stderr
    (facts / "entry_points.txt").unlink()
