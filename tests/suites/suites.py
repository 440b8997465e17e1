"""The table of suites."""

from tests.suites.suite import Suite

SUITES = (
    Suite("flask", "a web framework", "flask==3.1.0", ("werkzeug==3.1.3", "asgiref==3.8.1")),
    Suite(
        "starlette",
        "a web framework on asyncio and trio, tests in threads",
        "starlette==0.45.2",
        (
            "anyio==4.8.0",
            "httpx==0.28.1",
            "trio==0.28.0",
            "itsdangerous==2.2.0",
            "jinja2==3.1.5",
            "python-multipart==0.0.20",
            "pyyaml==6.0.2",
        ),
        left_out={
            "tests/test_staticfiles.py::test_staticfiles_with_invalid_dir": "root may read every file",
            "tests/test_requests.py::test_request_headers": "httpx offers zstd where zstandard is installed",
            "tests/test_websockets.py::test_websocket_headers": "httpx offers zstd where zstandard is installed",
        },
    ),
    Suite("aiosqlite", "asyncio, a thread for each database", "aiosqlite==0.20.0", (), ("aiosqlite/tests/smoke.py",)),
    Suite("click", "a toolkit for command-line tools; many parameters", "click==8.1.8"),
    Suite("sqlparse", "a parser", "sqlparse==0.5.3"),
    Suite(
        "pyparsing",
        "a parser; classes of unittest",
        "pyparsing==3.2.1",
        ("jinja2==3.1.5", "railroad-diagrams==3.0.1"),
        ("tests/test_unit.py", "tests/test_util.py", "-k", "Test02 or test_util"),
    ),
    Suite("more_itertools", "generators; classes of unittest", "more-itertools==10.5.0"),
    Suite("simplejson", "JSON in Python; classes of unittest", "simplejson==3.19.3", (), ("simplejson/tests",)),
    Suite("freezegun", "time stands still: clocks are replaced", "freezegun==1.5.1"),
    Suite("jinja2", "templates, compiled to code", "jinja2==3.1.5", ("trio==0.28.0",)),
    Suite(
        "attrs",
        "classes made at run time; hypothesis",
        "attrs==24.3.0",
        ("hypothesis==6.123.2", "cloudpickle==3.1.0"),
        ("tests", "--hypothesis-seed=0"),
        left_out={"tests/test_converters.py::TestPipe::test_wrapped_annotation": "it fails plainly, too"},
    ),
    Suite(
        "networkx",
        "graphs, numbers with numpy",
        "networkx==3.4.2",
        ("numpy==2.2.1",),
        ("networkx",),
    ),
    Suite(
        "tornado",
        "a web framework on its own loops; sockets, child processes; classes of unittest",
        "tornado==6.4.2",
        (),
        ("tornado/test", "-k", "not Mixin and not https and not HTTPS"),
    ),
    Suite("uncertainties", "numbers, with numpy", "uncertainties==3.2.2", ("numpy==2.2.1",)),
    Suite("click_workers", "the same in two workers of pytest-xdist", "click==8.1.8", workers=2),
)
