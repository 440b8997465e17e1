"""`replaydbg jupyter` installs, lists and removes kernelspecs; those of other programs stay as they are."""

import json
import sys
from pathlib import Path

import pytest

from replaydbg.cli.main import main


@pytest.fixture(autouse=True)
def jupyter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An interpreter that seems to have ipykernel, and a directory for kernelspecs that is empty."""
    (tmp_path / "ipykernel").mkdir()
    (tmp_path / "ipykernel" / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("JUPYTER_PATH", raising=False)
    return tmp_path / "data" / "kernels"


def test_a_kernel_is_installed_listed_and_removed(jupyter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jupyter", "install", "--children", "none"]) == 0
    content = json.loads((jupyter / "replaydbg" / "kernel.json").read_text())
    assert main(["jupyter", "status", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out.partition("\n")[2])["kernels"]
    assert main(["jupyter", "remove"]) == 0

    assert content["argv"][:7] == [
        sys.executable, "-P", "-m", "replaydbg", "record", "--quiet", "--seal-in-background"
    ]  # fmt: skip
    assert "--children=none" in content["argv"]
    assert content["argv"][-2:] == ["-f", "{connection_file}"]
    assert content["language"] == "python"
    assert [(each["name"], each["problem"]) for each in listed] == [("replaydbg", None)]
    assert not (jupyter / "replaydbg").exists()


def test_it_is_installed_in_an_environment(tmp_path: Path, jupyter: Path) -> None:
    assert main(["jupyter", "install", "--prefix", str(tmp_path / "env"), "--name", "rec", "--display-name", "R"]) == 0

    content = json.loads((tmp_path / "env" / "share" / "jupyter" / "kernels" / "rec" / "kernel.json").read_text())
    assert content["display_name"] == "R"
    assert not jupyter.exists()


def test_a_kernel_of_another_program_stays(jupyter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = jupyter / "python3" / "kernel.json"
    other.parent.mkdir(parents=True)
    other.write_text('{"argv": ["python"], "display_name": "Python 3", "language": "python"}')

    assert main(["jupyter", "install", "--name", "python3"]) == 2
    assert main(["jupyter", "remove", "--name", "python3"]) == 2
    assert capsys.readouterr().err.count("is a kernel of another program") == 2
    assert main(["jupyter", "status"]) == 0
    assert "No kernel is recorded" in capsys.readouterr().out
    assert other.exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["install", "--name", "../x"], "--name must consist of letters, digits, '.', '-' and '_' (got '../x')."),
        (["install", "--python", "/no/such/python"], "No such interpreter: '/no/such/python' (--python)."),
        (["remove"], "There is no kernel 'replaydbg'"),
    ],
)
def test_what_cannot_be_done_is_refused(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jupyter", *words]) == 2

    assert reason in capsys.readouterr().err


def test_an_interpreter_without_ipykernel_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ipykernel" / "__init__.py").write_text("raise ImportError\n")

    assert main(["jupyter", "install"]) == 2

    assert "it cannot import ipykernel" in capsys.readouterr().err


def test_a_kernel_whose_interpreter_is_missing_is_named(jupyter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jupyter", "install"]) == 0
    file = jupyter / "replaydbg" / "kernel.json"
    content = json.loads(file.read_text())
    content["metadata"]["replaydbg"]["python"] = "/gone/python"
    file.write_text(json.dumps(content))

    assert main(["jupyter", "status"]) == 1

    assert "/gone/python is missing" in capsys.readouterr().out
