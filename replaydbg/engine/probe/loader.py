"""Load the modules of the probe into a namespace of their own, and answer one query: the script that the core runs.

It gets `modules`, their code by full name; `lent`, the contents of the module `core`; `sys`; and `argument`, a query
as repr() writes it. It leaves `answer`, the bytes
of a plain value in the encoding of docs/reference/format.md.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sys
    from types import CodeType, ModuleType
    from typing import Any

    modules: dict[str, CodeType] = {}
    lent: dict[str, Any] = {}
    argument = b""


PACKAGE = "replaydbg.engine.probe"


class Loader:
    """The probe's modules, which `sys.modules` does not have, and their `__import__`."""

    def __init__(self) -> None:
        self.builtins = lent["builtins"] | {"__import__": self.find}
        # The statements `from __future__` and `import sys` are obeyed even after the program's modules have gone.
        self.loaded: dict[str, ModuleType] = {"sys": sys}
        self.add("__future__").__dict__["annotations"] = None
        self.add(f"{PACKAGE}.core").__dict__.update(lent)

    def find(self, name: str, names: Any = None, local_names: Any = None, wanted: Any = (), level: int = 0) -> Any:
        """Stand in for `__import__`: a module of the probe is found here, any other one by the program's imports."""
        if name in modules or name in self.loaded:
            return self.loaded.get(name) or self.load(name)
        return lent["builtins"]["__import__"](name, names, local_names, wanted, level)

    def load(self, name: str) -> Any:
        """Run a module's code."""
        module = self.add(name)
        lent["run"](modules[name], module.__dict__)
        return module

    def add(self, name: str) -> Any:
        """Make an empty module."""
        module = self.loaded[name] = type(sys)(name)
        module.__dict__["__builtins__"] = self.builtins
        return module


answer = Loader().find(f"{PACKAGE}.registry").answer_to(argument)
