"""A program in an exported test gets what it got when it was recorded, and fails in the same way."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from tests.exported_tests.conftest import Project, http_server

pytestmark = pytest.mark.slow


def test_files_of_the_working_directory(project: Project) -> None:
    (project.root / "in").mkdir()
    (project.root / "in" / "rows.csv").write_text("7,8\n")
    project.record(
        "from pathlib import Path\n"
        "Path('out.txt').write_text('made')\n"
        "rows = Path('in/rows.csv').read_text()\n"
        "raise ValueError(rows.strip() + Path('out.txt').read_text())\n"
    )
    (project.root / "in" / "rows.csv").write_text("other\n")

    project.assert_fails_with("ValueError: 7,8made")
    assert (project.root / "in" / "rows.csv").read_text() == "other\n"


def test_files_at_other_paths_are_found_there(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "conf.ini"
    outside.write_text("limit=3")
    (project.root / "beside.txt").write_text("beside")
    project.record(
        "import os, sys\n"
        "from pathlib import Path\n"
        f"text = open({str(outside)!r}).read() + (Path(__file__).parent / 'beside.txt').read_text()\n"
        f"try: os.open({str(tmp_path / 'missing')!r}, os.O_RDONLY)\n"
        "except FileNotFoundError as error: text += error.filename\n"
        "raise ValueError(text)\n"
    )
    outside.unlink()
    (project.root / "beside.txt").write_text("changed")
    (tmp_path / "missing").write_text("is there now")

    project.assert_fails_with(f"ValueError: limit=3beside{tmp_path / 'missing'}")


def test_what_exists_in_the_working_directory(project: Project) -> None:
    for each in ("there", "made/inner"):
        (project.root / each).mkdir(parents=True)
    (project.root / "flag").touch()
    project.record(
        "import os\n"
        "found = [os.path.exists(each) for each in ('flag', 'there', 'own', 'missing')]\n"
        "open('made/inner/out.txt', 'w').close(); os.mkdir('own'); open('own/x', 'w').close()\n"
        "raise ValueError(found + [os.path.exists(each) for each in ('own/x', 'made/inner/out.txt')])\n"
    )

    project.assert_fails_with("ValueError: [True, True, False, False, True, True]")
    text = project.test.read_text()
    assert 'DIRECTORIES = ["made/inner", "there"]' in text and '"own' not in text


def test_standard_input(project: Project) -> None:
    project.record("import sys\nfirst = input()\nraise ValueError(first + sys.stdin.read())\n", stdin=b"one\ntwo")

    project.assert_fails_with("ValueError: onetwo")


def test_arguments_and_environment(project: Project) -> None:
    project.record(
        'import os, sys\nraise ValueError(f\'{sys.argv[1:]} {os.environ["WHO"]} {os.environ.get("HOST_ONLY")}\')\n',
        "--fast",
        "ü x",
        WHO="me",
    )
    done = project.export()
    text = project.test.read_text(encoding="ascii")

    assert done.status == 0, done
    assert '    "WHO": "me",\n' in text
    assert '"HOST_ONLY"' in text
    assert "ValueError: ['--fast', 'ü x'] me None" in project.run_test().stdout


def test_clocks(project: Project) -> None:
    project.record(
        "import datetime, time\n"
        "from datetime import datetime as when, timezone\n"
        "a = time.time(), time.monotonic(), time.time_ns(), time.strftime('%H:%M:%S'), time.localtime().tm_sec\n"
        "b = when.now(), datetime.datetime.now(timezone.utc), when.fromtimestamp(a[0]), datetime.date.today()\n"
        "assert isinstance(b[0], when) and type(b[0]) is type(when(2020, 1, 1)) and when.now() > b[0]\n"
        "print(*a, *b, sep='|')\n"
        "raise ValueError('|'.join(map(str, (*a, *b))))\n"
    )
    recorded = project.record((project.root / "prog.py").read_text()).stdout.strip()

    project.assert_fails_with(f"ValueError: {recorded}")


def test_a_clock_that_is_read_more_often_goes_on(project: Project) -> None:
    project.record("import time\nstart = time.monotonic()\nraise ValueError('slow')\n")
    assert project.export().status == 0
    project.mend("raise ValueError('slow')", "assert 0 <= time.monotonic() - start < 30 and time.time() > 1")

    assert project.run_test().status == 0


def test_random_numbers(project: Project) -> None:
    done = project.record(
        "import os, random, secrets, uuid\n"
        "values = random.random(), random.Random().random(), secrets.token_hex(4), uuid.uuid4(), os.urandom(3)\n"
        "print(values)\n"
        "raise ValueError(str(values))\n"
    )

    project.assert_fails_with(f"ValueError: {done.stdout.strip()}")


def test_the_order_of_a_set(project: Project) -> None:
    done = project.record("words = ''.join({'one', 'two', 'three', 'four'})\nprint(words)\nraise ValueError(words)\n")

    project.assert_fails_with(f"ValueError: {done.stdout.strip()}")


CLIENTS = {
    "urllib": "import json, urllib.request\ndef ask(url, data): return json.load(urllib.request.urlopen(url, data))\n",
    "http.client": "import http.client, json, urllib.parse\n"
    "connection = None\n"
    "def ask(url, data):\n"
    "    global connection\n"
    "    parts = urllib.parse.urlsplit(url)\n"
    "    connection = connection or http.client.HTTPConnection(parts.netloc)\n"
    "    connection.request('POST' if data else 'GET', parts.path, data)\n"
    "    return json.load(connection.getresponse())\n",
    "asyncio": "import asyncio, json\n"
    "async def talk(url, data):\n"
    "    port = int(url.split(':')[2].partition('/')[0])\n"
    "    reader, writer = await asyncio.open_connection('localhost', port)\n"
    "    path = '/' + url.rpartition('/')[2]\n"
    "    head = f'POST {path} HTTP/1.0\\r\\ncontent-length: {len(data or b\"\")}\\r\\n\\r\\n'\n"
    "    writer.write(head.encode() + (data or b''))\n"
    "    answer = await reader.read()\n"
    "    writer.close()\n"
    "    return json.loads(answer.partition(b'\\r\\n\\r\\n')[2])\n"
    "def ask(url, data): return asyncio.run(talk(url, data))\n",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_http(project: Project, client: str) -> None:
    with http_server() as port:
        project.record(
            CLIENTS[client]
            + f"found = [ask('http://localhost:{port}/a', None), ask('http://localhost:{port}/b', b'xyz')]\n"
            "raise ValueError(found)\n"
        )

    found = [{"path": "/a", "got": 0, "count": 1}, {"path": "/b", "got": 3, "count": 2}]
    project.assert_fails_with(f"ValueError: {found}")


MODEL = Path(__file__).parents[1] / "pages" / "worlds" / "docs" / "how-to" / "record-an-agent"


def test_https(project: Project) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(MODEL / "model.pem", MODEL / "key.pem")
    with http_server(context) as port:
        project.record(
            "import json, ssl, urllib.request\n"
            f"trusted = ssl.create_default_context(cafile={str(MODEL / 'model.pem')!r})\n"
            "def ask(path):\n"
            f"    url = 'https://localhost:{port}/' + path\n"
            "    return json.load(urllib.request.urlopen(url, b'data', context=trusted))\n"
            "raise ValueError([ask('a'), ask('b')])\n"
        )

    found = [{"path": "/a", "got": 4, "count": 1}, {"path": "/b", "got": 4, "count": 2}]
    project.assert_fails_with(f"ValueError: {found}")


def test_tls_of_asyncio(project: Project) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(MODEL / "model.pem", MODEL / "key.pem")
    with http_server(context) as port:
        project.record(
            "import asyncio, json, ssl\n"
            f"trusted = ssl.create_default_context(cafile={str(MODEL / 'model.pem')!r})\n"
            "async def ask(path, connection):\n"
            "    reader, writer = connection\n"
            "    writer.write(f'GET /{path} HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n'.encode())\n"
            "    while (line := await reader.readline()).strip():\n"
            "        length = line.partition(b'content-length:')[2] or length if line[:1] != b'H' else b''\n"
            "    return json.loads(await reader.readexactly(int(length)))\n"
            "async def main():\n"
            f"    first = await asyncio.open_connection('localhost', {port}, ssl=trusted)\n"
            "    found = [await ask('a', first), await ask('b', first)]\n"
            "    first[1].close()\n"
            f"    found.append(await ask('c', await asyncio.open_connection('localhost', {port}, ssl=trusted)))\n"
            "    return found\n"
            "raise ValueError(asyncio.run(main()))\n"
        )

    found = [{"path": f"/{path}", "got": 0, "count": count} for count, path in enumerate("abc", 1)]
    project.assert_fails_with(f"ValueError: {found}")


def test_a_protocol_in_which_the_server_speaks_first(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=greets, args=(listener,))
        thread.start()
        project.record(
            "import socket\n"
            f"with socket.create_connection(('127.0.0.1', {port})) as peer:\n"
            "    words = [peer.recv(100)]\n"
            "    peer.sendall(b'hello'); words.append(peer.recv(100)); words.append(peer.recv(100))\n"
            "raise ValueError(words)\n"
        )
        thread.join()

    project.assert_fails_with("ValueError: [b'220 ready', b'250 hello', b'']")


def greets(listener: socket.socket) -> None:
    """Serve one client as a mail server does."""
    connection, _ = listener.accept()
    with connection:
        connection.sendall(b"220 ready")
        connection.sendall(b"250 " + connection.recv(100))


def test_a_refused_connection(project: Project) -> None:
    with http_server() as port:
        pass  # it has been closed: nobody listens there
    project.record(f"import socket\nsocket.create_connection(('127.0.0.1', {port}))\n")

    project.assert_fails_with("ConnectionRefusedError: [Errno 111] Connection refused")


def test_a_new_connection_elsewhere_is_refused(project: Project) -> None:
    with http_server() as port:
        project.record(f"import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{port}/')\nraise ValueError\n")
    assert project.export().status == 0
    project.mend("raise ValueError", "import socket; socket.create_connection(('192.0.2.1', 80))")

    assert "ConnectionRefusedError: [Errno 111] not in the recorded run" in project.run_test().stdout


def test_large_contents_are_beside_the_test(project: Project) -> None:
    (project.root / "big.bin").write_bytes(bytes(range(256)) * 4000)
    (project.root / "in").mkdir()
    (project.root / "in" / "big.bin").write_bytes(b"x" * 5000)
    project.record(
        "from pathlib import Path\n"
        "data = Path('big.bin').read_bytes(), Path('in/big.bin').read_bytes()\n"
        "raise ValueError(f'{len(data[0])} {data[0][-1]} {len(data[1])}')\n"
    )

    project.assert_fails_with("ValueError: 1024000 255 5000")
    folder = project.test.with_name("test_it_data")
    assert sorted(each.name for each in folder.iterdir()) == ["2-big.bin", "big.bin"]
    assert len(project.test.read_bytes()) < 6000


def test_an_exit_code(project: Project) -> None:
    project.record("import sys\nprint('bad')\nsys.exit(3)\n")

    done = project.export("--check")

    assert (done.status, done.stdout.splitlines()[-1]) == (
        0,
        "checked: the test fails as the recorded run did: exit code 3: bad",
    )
    ran = project.run_test()
    assert ran.status == 1 and "exit code 3\nbad\n" in ran.stdout


@pytest.mark.parametrize("words", [["-m", "package"], ["-c", "import package.__main__"]])
def test_other_forms_of_programs(project: Project, words: list[str]) -> None:
    package = project.root / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import sys\nraise ValueError(__name__.rpartition('.')[2] + str(sys.argv[1:]))\n"
    )
    project.record_words([*words, "one"])

    project.assert_fails_with("ValueError: __main__['one']")


def test_exporting_executes_nothing(project: Project, tmp_path: Path) -> None:
    project.record(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')\nraise ValueError\n")
    (tmp_path / "ran").unlink()

    assert project.export().status == 0

    assert not (tmp_path / "ran").exists()
    with open_recording(project.recording) as recording:
        assert recording.end is not None


def test_paths_that_are_made_from_the_working_directory(project: Project) -> None:
    for each in ("one", "two", "three"):
        (project.root / each).write_text(each)
    project.record(
        "import os\n"
        "from pathlib import Path\n"
        "names = sorted(os.listdir('.'))\n"
        "parts = [Path.cwd() / 'one', Path('two').resolve(), os.path.abspath('three')]\n"
        "raise ValueError(''.join(open(each).read() for each in parts))\n"
    )
    for each in ("one", "two", "three"):
        (project.root / each).unlink()

    project.assert_fails_with("ValueError: onetwothree")


def test_files_that_are_read_in_parts(project: Project) -> None:
    (project.root / "in").write_bytes(b"0123456789")
    project.record(
        "with open('in', 'rb', buffering=0) as file:\n"
        "    parts = [(file.seek(at), file.read(3))[1] for at in (6, 4, 0)]\n"
        "raise ValueError(parts)\n"
    )

    done = project.export()

    assert "the parts of the file 'in' that the program did not read: zeros" in done.stdout
    assert "changed during the run" not in done.stdout
    assert "ValueError: [b'678', b'456', b'012']\n" in project.run_test().stdout


def test_files_that_the_program_extends(project: Project) -> None:
    for each in ("one", "two"):
        (project.root / each).write_text("old")
    project.record(
        "found = []\n"
        "for name, mode in (('one', 'a+'), ('two', 'r+'), ('new', 'a+')):\n"
        "    with open(name, mode) as file:\n"
        "        file.seek(0, 2); file.write('more'); file.seek(0); found.append(file.read())\n"
        "raise ValueError(found)\n"
    )

    project.assert_fails_with("ValueError: ['oldmore', 'oldmore', 'more']")
    assert '"new"' not in project.test.read_text()


def test_a_file_that_is_long_where_it_is_not_read(project: Project) -> None:
    (project.root / "out.csv").write_text("header\n")
    project.record("with open('out.csv', 'a') as file:\n    if file.tell() != 0: raise ValueError(file.tell())\n")

    assert "the parts of the file 'out.csv' that the program did not read: zeros" in project.export().stdout
    assert "ValueError: 7\n" in project.run_test().stdout


def test_directories_and_files_that_are_in_the_way(project: Project) -> None:
    (project.root / "folder").mkdir()
    (project.root / "lock").touch()
    project.record(
        "found = []\n"
        "for name, mode in (('folder', 'r'), ('lock', 'x')):\n"
        "    try: open(name, mode)\n"
        "    except OSError as error: found.append(type(error).__name__)\n"
        "raise ValueError(found)\n"
    )

    project.assert_fails_with("ValueError: ['IsADirectoryError', 'FileExistsError']")


def test_sizes_of_files_that_are_not_read(project: Project) -> None:
    (project.root / "in").write_bytes(b"x" * 5000)
    project.record("import os\nraise ValueError(os.path.getsize('in'))\n")

    project.assert_fails_with("ValueError: 5000")


def test_names_elsewhere_that_exist_are_gaps(project: Project, tmp_path: Path) -> None:
    there, own = tmp_path / "there", tmp_path / "own"
    there.touch()
    project.record(
        f"import os\nif os.path.exists({str(there)!r}): os.mkdir({str(own)!r})\n"
        f"raise ValueError(os.path.exists({str(own / 'x')!r}), os.path.exists('/usr/bin'), open({str(there)!r}))\n"
    )
    assert "whether these exist" not in project.export().stdout  # it is opened, too
    project.test.unlink()
    own.rmdir()
    (project.root / "prog.py").unlink()
    project.recording.unlink()
    project.record(f"import os\nraise ValueError(os.path.exists({str(there)!r}))\n")

    assert f"whether these exist, and their sizes, which are today's: {str(there)!r}\n" in project.export().stdout


def test_modules_that_are_found_from_the_working_directory(project: Project) -> None:
    for each in ("lib", "src", "app"):
        (project.root / each).mkdir()
    (project.root / "lib" / "one.py").write_text("import two\nNAME = 'one' + two.NAME\n")
    (project.root / "src" / "two.py").write_text("NAME = 'two'\n")
    (project.root / "here.py").write_text("NAME = 'here'\n")
    (project.root / "app" / "run.py").write_text(
        "import os, sys\nsys.path[:0] = ['lib', os.getcwd()]\nimport here, one\n"
        "raise ValueError(one.NAME + here.NAME)\n"
    )
    project.record_words(["app/run.py"], PYTHONPATH="src")

    project.assert_fails_with("ValueError: onetwohere")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("for each in os.environ: print(each)", "variables of the environment that the program finds"),
        ("print(dict(os.environ))", "variables of the environment that the program finds"),
        ("print(os.environ['PATH'], os.environ.get(\"X\"), 'X' in os.environ)", ""),
        ("import time; print(time.localtime(0))", "the time zone, which is that of the machine"),
    ],
)
def test_what_libraries_take_from_the_machine_is_named(project: Project, source: str, said: str) -> None:
    project.record(f"import os\n{source}\nraise ValueError\n")

    shown = project.export().stdout

    assert said in shown and (said or "variables of" not in shown), shown


def test_a_check_lacks_the_other_variables_of_today(project: Project) -> None:
    project.record(
        "import os, time\nname = next(each for each in os.environ if each.startswith('APP_'))\n"
        "raise ValueError(os.environ[name], os.path.expanduser('~'), time.localtime(0)[3])\n",
        APP_X="1",
        HOME="/dev/null/nowhere",
        TZ="Asia/Tokyo",
    )

    done = project.export("--check")

    assert done.status == 1 and done.stdout.endswith("the test with exit code 1: StopIteration\n"), done
    project.mend("os.environ[name]", "1")
    project.mend("next(each for each in os.environ if each.startswith('APP_'))", "''")
    assert "ValueError: (1, '/dev/null/nowhere', 9)\n" in project.run_test().stdout


def test_a_refused_certificate_is_a_gap(project: Project) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(MODEL / "model.pem", MODEL / "key.pem")
    with http_server(context) as port:
        project.record(f"import urllib.request\nurllib.request.urlopen('https://localhost:{port}/a', timeout=5)\n")

    done = project.export("--check")

    assert "  that the certificate of 127.0.0.1 was refused: the test checks none\n" in done.stdout, done
    assert done.status == 1 and "the test with exit code 1: " in done.stdout
