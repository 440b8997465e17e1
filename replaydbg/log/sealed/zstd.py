"""Load the compiled part of zstandard alone: its package imports typing and platform first, 4 ms for each recording."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_PACKAGE, _COMPILED = "zstandard", "zstandard.backend_c"
_CHOICE = "PYTHON_ZSTANDARD_IMPORT_POLICY"
"""The package's own variable, with which a user chooses another implementation."""


def load_zstandard() -> ModuleType:
    """Return the module `zstandard`, or the part of it that has its classes. Raises ImportError."""
    loaded = sys.modules.get(_PACKAGE) or sys.modules.get(_COMPILED)
    return loaded or _compiled() or _whole()


def _compiled() -> ModuleType | None:
    """Return the compiled module; None if it is not where the package has it today."""
    # Both are modules of the interpreter itself; importlib would import more than is saved here.
    import _frozen_importlib_external as importer
    import _imp
    import os

    package = importer.PathFinder.find_spec(_PACKAGE)
    if package is None or not package.submodule_search_locations or os.environ.get(_CHOICE):
        return None
    spec = importer.PathFinder.find_spec(_COMPILED, list(package.submodule_search_locations))
    if spec is None or not isinstance(spec.loader, importer.ExtensionFileLoader):
        return None
    module: ModuleType = _imp.create_dynamic(spec)
    _imp.exec_dynamic(module)
    # The package finds it there if it is imported later, so it is not loaded twice.
    return sys.modules.setdefault(_COMPILED, module)


def _whole() -> ModuleType:
    import zstandard

    return zstandard
