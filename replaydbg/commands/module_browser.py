"""The modules that the program has loaded, and their variables."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from replaydbg.commands.inspecting import print_variables
from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand
from replaydbg.engine.query_results import LoadedModule
from replaydbg.errors import UsageError
from replaydbg.events.nearest_words import nearest
from replaydbg.events.show import printable
from replaydbg.render import texts


def _modules(view: View, rest: str) -> None:
    wanted, found = rest.strip(), view.session.ask.modules()
    if not wanted:
        own = [each for each in found if each.file and _is_own(view, each)]
        _print(view, own)
        left = len(found) - len(own)
        others = "1 module that is not yours is" if left == 1 else f"{left:,} modules that are not yours are"
        view.screen.line(f"{others} not shown: `modules all` lists all.", "dim")
    elif any(each.name == wanted for each in found):
        print_variables(view, view.session.ask.module_variables(wanted))
    elif wanted == "all":
        _print(view, found)
    elif any(each in wanted for each in "*?["):
        matching = [each for each in found if fnmatchcase(each.name, wanted)]
        _print(view, matching)
        if not matching:
            view.screen.line(f"No loaded module matches {wanted!r}.")
    else:
        hint = nearest(wanted, [each.name for each in found])
        raise UsageError(f"Module {wanted!r} is not loaded here{hint}. `modules all` lists all.")


def _is_own(view: View, module: LoadedModule) -> bool:
    return view.own_code.is_own(module.file, is_command=view.session.header.kind == "command")


def _print(view: View, found: Iterable[LoadedModule]) -> None:
    for each in found:
        file = texts.file_text(view.session, each.file) if each.file else "(built in)"
        count = "1 variable" if each.variables == 1 else f"{each.variables:,} variables"
        view.screen.line(f"{printable(each.name)}  {file}  {count}")


COMMANDS = (
    PromptCommand(
        ("modules", "module"),
        "[NAME | PATTERN | all]",
        "list the loaded modules, or the variables of one",
        _modules,
        completes="modules",
    ),
)
