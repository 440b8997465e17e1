"""The table of scenarios. Those that need something which replaydbg cannot do yet say so in `waits_for`."""

from tests.real import prepare
from tests.real.scenario import Scenario, script
from tests.real.scenarios_lanes import LANES

_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")

_TESTING = (
    Scenario(
        "pytest_failing",
        "pytest",
        "a suite with failing assertions that show random numbers, times and a fixture's file",
        (*_PYTEST, "--basetemp=tmp"),
        "2 failed, 1 passed",
        {"test_orders.py": "orders_suite.py.in", "stock.csv": "stock.csv"},
        exit_code=1,
    ),
    Scenario(
        "pytest_addresses",
        "pytest",
        "failing assertions that show bound built-in methods",
        (*_PYTEST, "-vv"),
        "built-in method",
        {"test_addresses.py": "addresses_suite.py.in", "stock.csv": "stock.csv"},
        exit_code=1,
    ),
    Scenario(
        "hypothesis",
        "hypothesis",
        "a property that fails: generated from entropy, shrunk, kept in its example database",
        (*_PYTEST, "-p", "hypothesis.extra.pytestplugin", "--hypothesis-show-statistics"),
        "1 failed, 1 passed",
        {"test_properties.py": "properties_hypothesis.py.in"},
        exit_code=1,
    ),
    Scenario(
        "unittest",
        None,
        "discovery, subtests that fail by chance, temporary directories",
        ("-m", "unittest", "discover", "-v"),
        "FAILED (failures=",
        {"test_shaky.py": "shaky_unittest.py.in"},
        exit_code=1,
    ),
    script("doc_tested", None, "doctest with a failing example", "0.5", "stock.csv", exit_code=1),
    Scenario(
        "coverage",
        "coverage",
        "runs a script with branch coverage into its sqlite file",
        ("-m", "coverage", "run", "--branch", "--debug=sys", "settings_csv.py"),
        "Bergen",
        {"settings_csv.py": "settings_csv.py", "settings.ini": "settings.ini", "sales.csv": "sales.csv"},
    ),
)

_CHECKING = (
    Scenario(
        "black_diff",
        "black",
        "formats a file and shows the difference with its times",
        ("-m", "black", "--diff", "ugly.py"),
        "1 file would be reformatted",
        {"ugly.py": "ugly.py.in"},
    ),
    Scenario(
        "black_write",
        "black",
        "rewrites a file in place, with its cache",
        ("-m", "black", "-v", "ugly.py"),
        "1 file reformatted",
        {"ugly.py": "ugly.py.in"},
    ),
    Scenario(
        "yapf",
        "yapf",
        "formats a file to stdout",
        ("-m", "yapf", "ugly.py"),
        "return x['a']",
        {"ugly.py": "ugly.py.in"},
    ),
    Scenario(
        "mypy",
        "mypy",
        "checks a file with three errors; compiled to C, cache written",
        ("-m", "mypy", "typed.py"),
        "Found 3 errors",
        {"typed.py": "typed_mypy.py.in"},
        exit_code=1,
        # ast_serialize: it opens and reads what it parses.
    ),
    Scenario(
        "pyflakes",
        "pyflakes",
        "checks two files",
        ("-m", "pyflakes", "ugly.py", "typed.py", "missing.py"),
        "missing.py",
        {"ugly.py": "ugly.py.in", "typed.py": "typed_mypy.py.in"},
        exit_code=1,
    ),
)

_PACKAGING = (
    Scenario("pip_list", "pip", "lists what is installed", ("-m", "pip", "list"), "simpy"),
    Scenario("pip_show", "pip", "shows the files of a package", ("-m", "pip", "show", "-f", "click"), "click/core.py"),
    Scenario(
        "pip_download",
        "pip",
        "downloads a wheel from a folder, without an index",
        ("-m", "pip", "download", "--no-index", "--find-links=wheels", "--no-deps", "-d", "got", "tinything"),
        "Successfully downloaded tinything",
        prepare=prepare.wheel_folder,
    ),
    Scenario(
        "pip_missing",
        "pip",
        "fails to find a package without an index",
        ("-m", "pip", "download", "--no-index", "there-is-no-such-thing"),
        "No matching distribution found",
        exit_code=1,
    ),
    Scenario("venv", None, "makes a virtual environment", ("-m", "venv", "--without-pip", "made"), ""),
    Scenario(
        "cookiecutter",
        "cookiecutter",
        "makes a project from a template with the time, a random string and a hook run as a subprocess",
        ("-m", "cookiecutter", "--no-input", "-v", "template"),
        "made in",
        {
            "template/cookiecutter.json": "cookiecutter.json",
            "template/{{cookiecutter.slug}}/README.md": "README.template",
            "template/hooks/post_gen_project.py": "post_gen.py.in",
        },
        child_lines="made in ",
    ),
)

_DATA = (
    script("shop_sqlalchemy", "SQLAlchemy", "an ORM on a sqlite file, uuid and clock as defaults", "orders left"),
    script("notes_peewee", "peewee", "an ORM on a sqlite file with a user function and a rollback", "20 notes stay"),
    script(
        "sales_pandas", "pandas", "reads and writes CSV and JSON, groups, samples, time stamps", "2024", "sales.csv"
    ),
    script(
        "arrays_numpy",
        "numpy",
        "old and new generators; save, load, tofile, fromfile, memmap",
        "[0.5, 1.5, 2.5] [0.5, 1.5, 2.5]",
        prepare=prepare.array_files,
    ),
    script("algebra_sympy", "sympy", "integrates and factors with random coefficients", "="),
    script(
        "routes_networkx", "networkx", "a random graph written as GraphML and read again", "Graph with", "edges.txt"
    ),
    script("bank_simpy", "simpy", "a simulation from unseeded random numbers", "mean wait"),
    script("evolve_deap", "deap", "a genetic algorithm from unseeded random numbers", "gen"),
    script("people_faker", "Faker", "invents people in three languages, unseeded", "company"),
)

_TEXT = (
    script("letters_jinja2", "Jinja2", "templates from files with a byte code cache", "Dear", "base.txt", "letter.txt"),
    Scenario(
        "pygments",
        "Pygments",
        "highlights a source file",
        ("-m", "pygments", "-f", "html", "-O", "full", "stock.py"),
        "highlight",
        {"stock.py": "twins.py"},
    ),
    Scenario(
        "docutils",
        "docutils",
        "makes HTML from a text that includes a file and the date",
        ("-m", "docutils", "--time", "--generator", "paper.rst"),
        "<table",
        {"paper.rst": "paper.rst", "three.txt": "three.txt"},
    ),
    Scenario(
        "mkdocs",
        "mkdocs",
        "builds a site with a theme; times in its log and sitemap",
        ("-m", "mkdocs", "build"),
        "Documentation built in",
        {"mkdocs.yml": "mkdocs.yml", "docs/index.md": "index.md", "docs/more.md": "more.md"},
    ),
    script("dates_arrow", "arrow", "now in time zones, humanized; dateutil's rules and parser", "ago"),
    script(
        "settings_csv", None, "configparser and csv, steered by the environment", "Bergen", "settings.ini", "sales.csv"
    ),
)

_TERMINAL = (
    script(
        "todo_click",
        "click",
        "a command with an environment variable, a progress bar and an error",
        "is too many",
        "edges.txt",
        arguments=("draw", "--pick", "3", "edges.txt"),
        env={"TODO_OWNER": "Ada"},
        exit_code=1,
    ),
    script(
        "crash_rich", "rich", "an uncaught exception, shown with local variables", "locals", "three.txt", exit_code=1
    ),
    script(
        "objects_rich",
        "rich",
        "the same where the local variables are objects",
        "object at",
        "three.txt",
        exit_code=1,
    ),
    script("bars_tqdm", "tqdm", "nested progress bars on stderr, without the monitor thread", "outer: 100%"),
    Scenario(
        "httpie",
        "httpie",
        "prints the request that it would send",
        ("-m", "httpie", "--ignore-stdin", "--offline", "--multipart", "POST", "example.org", "a=1", "when=now"),
        "POST / HTTP/1.1",
    ),
    script("log_much", None, "logging to rotating files and stderr, with exceptions", "app.log.2"),
)

_SYSTEM = (
    script(
        "tools_plumbum",
        "plumbum",
        "pipelines, redirections, failures",
        "7 wrong",
        "edges.txt",
        prepare=prepare.working_folder,
    ),
    script(
        "twins",
        None,
        "os.walk, hashlib, shutil, tempfile, secrets, uuid1, platform",
        "one.txt",
        prepare=prepare.data_folder,
    ),
    script("archives", None, "tarfile, zipfile, gzip, bz2, lzma, shutil", "again.zip", prepare=prepare.data_folder),
    Scenario(
        "zipfile",
        None,
        "the command line of zipfile",
        ("-m", "zipfile", "-c", "out.zip", "data"),
        "",
        prepare=prepare.data_folder,
    ),
    Scenario(
        "tarfile",
        None,
        "the command line of tarfile",
        ("-m", "tarfile", "-v", "-c", "out.tar.xz", "data"),
        "out.tar.xz",
        prepare=prepare.data_folder,
    ),
    Scenario(
        "timeit",
        None,
        "measures with the clock; how often it loops depends on it",
        ("-m", "timeit", "-s", "import random", "random.random()"),
        "best of 5",
    ),
    script("measured", None, "a part of it under cProfile, read with pstats", "function calls", "three.txt"),
    Scenario(
        "cprofile",
        None,
        "profiles with a clock of its own in C",
        ("-m", "cProfile", "-s", "cumulative", "hot_profile.py"),
        "function calls",
        {"hot_profile.py": "hot_profile.py", "three.txt": "three.txt"},
    ),
    script("refused_http", None, "http.client and urllib where nothing listens", "Connection refused"),
)

SCENARIOS = (*_TESTING, *_CHECKING, *_PACKAGING, *_DATA, *_TEXT, *_TERMINAL, *_SYSTEM, *LANES)
