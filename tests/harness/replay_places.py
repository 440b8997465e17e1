"""Lay out the directory in which a fixture is recorded: the program, instrumented, and the files that it may read."""

import ast
import functools
import re
import shutil
import sqlite3
import sys
import zipfile
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

_BIG_LINES = 60_000

# Prints the plain data among the final globals of `__main__` on descriptor 2 at exit. One expression on one line, so
# that it leaves no name behind and moves no line; the handler is registered first and so runs last. A long text is cut,
# with a checksum of all of it.
_DIGEST = "; " + re.sub(
    r"\s+",
    " ",
    """
    (lambda space, plain: __import__("atexit").register(lambda: (lambda text: __import__("posix").write(2,
    ("globals: %s\\n" % (text if len(text) < 3000 else "%s... crc %d" % (text[:1000],
    __import__("binascii").crc32(text.encode())))).encode()))(ascii({name: value for name, value in space.items()
    if not name.startswith("_") and plain(plain, value)}))))(globals(), lambda plain, value:
    type(value) in (bool, int, float, complex, str, bytes, bytearray, type(None))
    or (type(value) in (list, tuple) and all(plain(plain, item) for item in value))
    or (type(value) is dict and all(plain(plain, key) and plain(plain, item) for key, item in value.items())))
    """.strip(),
)


class Form(Enum):
    """How the interpreter is given the program."""

    SCRIPT = "script"
    MODULE = "module"
    COMMAND = "command"
    DIRECTORY = "directory"
    ZIP = "zip"
    CONSOLE = "console"


def with_digest(source: str) -> str:
    """Return `source` with a report of its globals after its docstring, on the docstring's last line."""
    docstring = ast.parse(source).body[0]
    assert isinstance(docstring, ast.Expr) and docstring.end_lineno is not None
    lines = source.split("\n")
    assert docstring.end_col_offset == len(lines[docstring.end_lineno - 1].encode()), "something follows the docstring"
    lines[docstring.end_lineno - 1] += _DIGEST
    return "\n".join(lines)


def lay_out(program: Path, form: Form, work: Path, *, has_big_file: bool) -> tuple[str, ...]:
    """Create the directory `work` with `program` in it; return the interpreter's arguments that start it.

    For `Form.CONSOLE` these are not arguments of the interpreter but the name of the command, in `work/bin`.
    """
    work.mkdir(parents=True)
    _lay_inputs(work, has_big_file=has_big_file)
    match form:
        case Form.DIRECTORY | Form.ZIP:
            return (_lay_package(program, form, work),)
        case Form.MODULE if program.is_dir():
            _lay_package(program, Form.DIRECTORY, work)
            return ("-m", program.name)
        case Form.COMMAND:
            return ("-c", with_digest(program.read_text()))
        case Form.CONSOLE:
            return (_lay_command(program, work),)
    (work / program.name).write_text(with_digest(program.read_text()))
    return ("-m", program.stem) if form is Form.MODULE else (program.name,)


def _lay_package(program: Path, form: Form, work: Path) -> str:
    target = work / program.name
    shutil.copytree(program, target, ignore=shutil.ignore_patterns("__pycache__"))
    main = target / "__main__.py"
    main.write_text(with_digest(main.read_text()))
    if form is Form.DIRECTORY:
        return program.name
    with zipfile.ZipFile(work / "app.pyz", "w") as archive:
        for path in sorted(target.iterdir()):
            archive.writestr(zipfile.ZipInfo(path.name, (2024, 1, 1, 0, 0, 0)), path.read_bytes())
    shutil.rmtree(target)
    return "app.pyz"


def _lay_command(program: Path, work: Path) -> str:
    name = program.stem.replace("_", "-")
    (work / "bin").mkdir()
    command = work / "bin" / name
    command.write_text(f"#!{sys.executable}\n{with_digest(program.read_text())}")
    command.chmod(0o755)
    return name


def _lay_inputs(work: Path, *, has_big_file: bool) -> None:
    for name, content in _inputs():
        path = work / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content)
    (work / "link.txt").symlink_to("input.txt")
    if has_big_file:
        (work / "big.txt").write_text(
            "".join(f"{n}: a line of the large file, {n * n % 7919}\n" for n in range(_BIG_LINES))
        )


@functools.cache
def _inputs() -> tuple[tuple[str, bytes], ...]:
    return tuple(_make_inputs())


def _make_inputs() -> Iterator[tuple[str, bytes]]:
    yield "input.txt", "first line\nsecond line, with é and 漢字\n\nfourth line\nlast, without its end".encode()
    yield "data.bin", bytes(n * n * 31 % 251 for n in range(5000)) + bytes(range(256))
    yield "table.csv", b'name,count,note\nada,3,"a, b"\ngrace,5,\n'
    yield "items.json", b'{"items": [1, 2.5, null, true, "text"], "nested": {"a": {"b": []}}}\n'
    yield "conf.ini", b"[server]\nhost = example.invalid\nport = 80\n[paths]\nhome = /srv\n"
    yield "sub/inner.txt", b"the inner file\n"
    yield "sub/blob.bin", bytes(range(200))
    yield "sub/deep/leaf.txt", b"a leaf\n"
    yield "given.db", _database()


def _database() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table words (word text, number integer)")
    connection.executemany("insert into words values (?, ?)", [("one", 1), ("two", 2), ("three", 3)])
    connection.commit()
    image = connection.serialize()
    connection.close()
    return image
