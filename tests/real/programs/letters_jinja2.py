# mypy: ignore-errors
# ruff: noqa
"""jinja2: templates from files, inheritance, a byte code cache, the random filter, the time."""

import datetime
import tempfile

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, UndefinedError

with tempfile.TemporaryDirectory() as cache:
    env = Environment(
        loader=FileSystemLoader("."), bytecode_cache=FileSystemBytecodeCache(cache), undefined=StrictUndefined
    )
    env.globals["now"] = datetime.datetime.now
    print(env.get_template("letter.txt").render(name="Ada", gifts=["book", "clock", "map"]))
    try:
        env.get_template("letter.txt").render(name="Ada")
    except UndefinedError as error:
        print(error)
    print(env.list_templates(filter_func=lambda name: name.endswith(".txt")))
