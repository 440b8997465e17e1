"""An index of packages with a stand-in for replaydbg: `pip install replaydbg` works without a network and a compiler.

The stand-in has the names, extras and commands of the real package, and imports it from where the tests have it.
"""

from __future__ import annotations

import sysconfig
import tomllib
import zipfile
from pathlib import Path

import replaydbg
from tests.pages.blocks import ROOT


def make_index(folder: Path) -> dict[str, str]:
    """Write the stand-in into a directory; return the variables that make pip look there, and nowhere else."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = f"replaydbg-{replaydbg.__version__}"
    metadata = [
        "Metadata-Version: 2.1", "Name: replaydbg", f"Version: {replaydbg.__version__}",
        *(f"Provides-Extra: {each}" for each in project["optional-dependencies"]),
    ]  # fmt: skip
    commands = [f"{command} = {target}" for command, target in project["scripts"].items()]
    contents = {
        "replaydbg_stand_in.pth": f"{ROOT}\n{sysconfig.get_path('purelib')}\n",
        f"{name}.dist-info/METADATA": "\n".join(metadata) + "\n",
        f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}.dist-info/entry_points.txt": "[console_scripts]\n" + "\n".join(commands) + "\n",
    }
    folder.mkdir(parents=True)
    record = [*(f"{each},," for each in contents), f"{name}.dist-info/RECORD,,"]
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
        for each, text in contents.items():
            wheel.writestr(each, text)
        wheel.writestr(f"{name}.dist-info/RECORD", "\n".join(record) + "\n")
    return {
        "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_FIND_LINKS": str(folder), "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1",
    }  # fmt: skip
