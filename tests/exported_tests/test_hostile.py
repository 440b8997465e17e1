"""Texts of a recording stay data in an exported test, whatever they are; secrets are not in it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from replaydbg.errors import ReplaydbgError
from replaydbg.exported_tests.exported_file import write_test
from tests.exported_tests.conftest import Project
from tests.harness.build import Example, LogBuilder, end_json, header_json

HOSTILE = "x'\"\"\"'''\nINJECTED()\r\n\\\u2028#\u202e{{NAME}} USES WAY\x1b[31m"
NOTES = [{"kind": "x", "text": HOSTILE, "count": 1}]
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


def assert_is_data(test: Path) -> None:
    """Check that a test has the hostile text in literals and comments alone."""
    data = test.read_bytes()
    assert data.isascii() and b"\x1b" not in data and b"\r" not in data
    for node in ast.walk(ast.parse(data)):
        assert not (isinstance(node, ast.Name) and node.id == "INJECTED")
    assert all(line.startswith("#") for line in data.decode().split("\n")[:5])


@pytest.mark.slow
def test_names_and_values_of_a_program(project: Project) -> None:
    name = HOSTILE.replace("/", "")
    (project.root / name).write_text(HOSTILE * 200)
    project.record(
        "import os, sys\n"
        f"text = open({name!r}).read()\n"
        "raise ValueError(str(len(text)) + sys.argv[1][:1] + os.environ['WHO'][:1])\n",
        HOSTILE,
        WHO=HOSTILE.replace("\0", ""),
    )

    project.assert_fails_with(f"ValueError: {len(HOSTILE.replace(chr(13), '')) * 200}xx")

    assert_is_data(project.test)
    assert len(list(project.test.with_name("test_it_data").iterdir())) == 1


@pytest.mark.parametrize(
    ("header", "end"),
    [
        ({"target": HOSTILE, "name": HOSTILE, "created": HOSTILE}, {}),
        ({"kind": "command", "target": HOSTILE, "argv": ["-c", HOSTILE]}, {"status": 1}),
        ({"kind": "module", "target": HOSTILE, "cwd": "/tmp/" + HOSTILE}, {"status": -9}),
        ({"env": {HOSTILE: HOSTILE}, "argv": ["prog.py", HOSTILE]}, {"notes": NOTES}),
        ({}, {"test": {"nodeid": f"test_x.py::{HOSTILE}", "failure": {"type": HOSTILE, "message": HOSTILE}}}),
    ],
)
def test_headers_and_ends(tmp_path: Path, header: dict[str, object], end: dict[str, object]) -> None:
    example = Example(header_json(**header), end_json(**end), LogBuilder().to_bytes())
    recording = example.write(tmp_path, "run-1")
    test = tmp_path / "test_x.py"

    write_test(recording, test)

    assert_is_data(test)


@pytest.mark.parametrize("node", ["-p evil", "/etc/x.py::test", "../../x.py::test", "--pyargs"])
def test_a_node_that_leads_elsewhere_is_refused(tmp_path: Path, node: str) -> None:
    example = Example(header_json(), end_json(test={"nodeid": node, "failure": None}), LogBuilder().to_bytes())
    recording = example.write(tmp_path, "run-1")

    with pytest.raises(ReplaydbgError, match="is not the name of a test in this project"):
        write_test(recording, tmp_path / "test_x.py")

    assert not (tmp_path / "test_x.py").exists()


@pytest.mark.parametrize("flag", ["-c", "-mevil", "-Xpycache_prefix=x", "-i", "evil.py"])
def test_only_plain_options_of_the_interpreter_are_passed_on(tmp_path: Path, flag: str) -> None:
    header = header_json()
    header["python"]["flags"] = ["-O", flag]
    recording = Example(header, end_json(), LogBuilder().to_bytes()).write(tmp_path, "run-1")

    test = write_test(recording, tmp_path / "test_x.py")

    is_plain = flag.startswith("-X")
    assert (f'"{flag}", __file__' in (tmp_path / "test_x.py").read_text()) == is_plain
    assert any("the interpreter's option" in each for each in test.gaps) != is_plain


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--secrets=keep",)], ids=["masked", "kept"])
def test_secrets_are_not_in_it(project: Project, options: tuple[str, ...]) -> None:
    (project.root / "conf").write_text(f"token={TOKEN}\n")
    (project.place / TOKEN).write_text("x")
    source = (
        "import os, sys\n"
        f"try: open('../{TOKEN}').close()\nexcept OSError: pass\n"
        "given = os.environ['API_TOKEN'], open('conf').read(), sys.stdin.read()\n"
        "raise ValueError([len(each) for each in given], given[0])\n"
    )
    project.record(source, stdin=f"Authorization: Bearer {TOKEN}".encode(), options=options, API_TOKEN=TOKEN)

    project.assert_fails_with(f"ValueError: ([40, 47, 62], '{'*' * 40}')")

    project.test.unlink()
    checked = project.export("--check")
    assert checked.status == 0, checked
    written = project.test.read_text()
    assert TOKEN[4:16] not in written + checked.stdout + checked.stderr
    assert f'"API_TOKEN": "{"*" * 40}"' in written
    assert "secrets: asterisks stand in their place" in written


@pytest.mark.slow
def test_the_program_of_a_foreign_recording_is_not_run(project: Project, tmp_path: Path) -> None:
    project.record(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')\nraise ValueError\n")
    (tmp_path / "ran").unlink()
    for path in (tmp_path / "data").rglob("*"):
        if path.is_file():
            path.unlink()  # the key of this installation

    done = project.export("--check")

    assert (done.status, done.stdout) == (2, ""), done
    assert "you did not make this recording" in done.stderr
    assert not (tmp_path / "ran").exists() and not project.test.exists()
