"""The actions of the terminal UI and their keys: one table for key bindings, palette and help."""

from __future__ import annotations

from collections.abc import Mapping

from replaydbg.classes import dataclass
from replaydbg.errors import UsageError

_NAMES = {
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "{": "left_curly_bracket",
    "}": "right_curly_bracket",
    "%": "percent_sign",
    "'": "apostrophe",
    ":": "colon",
    "/": "slash",
    "?": "question_mark",
    "<": "less_than_sign",
    ">": "greater_than_sign",
    "space": "space",
}
"""Textual's names of keys that are punctuation."""


@dataclass(frozen=True, slots=True)
class KeyAction:
    """An action that a key can trigger."""

    id: str
    keys: str
    """Its keys, separated by spaces."""
    action: str
    """Textual's name of the action."""
    title: str
    group: str
    hint: str = ""
    """Its text in the bottom line; empty: it is not listed there."""


def _moves() -> tuple[KeyAction, ...]:
    moving = "Moving"
    return (
        KeyAction("next", "n", "order('next')", "go to the next line of this function", moving, "next"),
        KeyAction("step", "s", "order('step')", "go to the next line, into calls", moving, "step"),
        KeyAction("finish", "f", "order('finish')", "run to the end of this function", moving, "finish"),
        KeyAction("continue", "c", "order('continue')", "run to the next breakpoint, or the end", moving, "continue"),
        KeyAction(
            "reverse-next",
            "N",
            "order('reverse-next')",
            "go back to the previous line of this function",
            moving,
            "back",
        ),
        KeyAction("reverse-step", "S", "order('reverse-step')", "go back to the previous line, into calls", moving),
        KeyAction(
            "reverse-finish", "F", "order('reverse-finish')", "go back to the line that called this function", moving
        ),
        KeyAction(
            "reverse-continue",
            "C",
            "order('reverse-continue')",
            "run back to the previous breakpoint, or the start",
            moving,
        ),
        KeyAction("run-to", "t", "run_to('advance')", "run forward to the line under the cursor", moving),
        KeyAction("reverse-run-to", "T", "run_to('reverse-advance')", "run back to the line under the cursor", moving),
        KeyAction(
            "just-my-code",
            "J",
            "order('just-my-code')",
            "skip code that is not yours in steps, or not",
            moving,
        ),
        KeyAction("previous-snapshot", "[", "order('snapshot previous')", "go to the previous snapshot", moving),
        KeyAction("next-snapshot", "]", "order('snapshot next')", "go to the next snapshot", moving),
        KeyAction(
            "previous-landmark", "{", "order('landmark previous')", "go to the previous exception or mark", moving
        ),
        KeyAction("next-landmark", "}", "order('landmark next')", "go to the next exception or mark", moving),
        KeyAction("start", "g", "order('start')", "go to the program's first line", moving),
        KeyAction("end", "G", "order('end')", "go to the program's last line", moving),
        KeyAction("failure", "e", "failure", "go to where the program failed", moving, "exception"),
        KeyAction("seek", "%", "ask_seek", "go to a moment", moving),
        KeyAction("back", "backspace", "order('back')", "go to the position before the last move", moving),
    )


def _looks() -> tuple[KeyAction, ...]:
    looking = "Inspecting"
    return (
        KeyAction("up", "u", "order('up')", "select the caller's frame", looking),
        KeyAction("down", "d", "order('down')", "select the frame called from this one", looking),
        KeyAction("who-wrote", "W", "who_wrote", "show which line wrote the selected value", looking, "who wrote"),
        KeyAction("history", "v", "history", "show every value of the selected variable over the run", looking),
        KeyAction("watch", "w", "ask_watch", "show an expression at each stop", looking),
        KeyAction("heap-diff", "D", "ask_diff", "show what changed in memory since another moment", looking, "diff"),
        KeyAction("heap", "H", "heap", "show what is in memory here", looking),
        KeyAction("growth", "L", "growth", "show how memory grows over the run, and what leaks", looking),
        KeyAction("icicle", "I", "icicle", "show what keeps memory alive as an icicle graph", looking),
        KeyAction("resources", "R", "resources", "show open files, sockets, locks, timers and children", looking),
        KeyAction("print", "p", "ask_print", "print an expression each time the line under the cursor ran", looking),
        KeyAction("bisect", "x", "bisect", "find the moment at which something went wrong", looking),
        KeyAction("futures", "U", "futures", "let the run go on from here in other ways", looking),
        KeyAction("search", "/", "ask_search", "search in the source", looking),
    )


def _more() -> tuple[KeyAction, ...]:
    more = "More"
    return (
        KeyAction(
            "breakpoint", "b", "breakpoint", "set or remove a breakpoint at the line under the cursor", more, "break"
        ),
        KeyAction("mark", "m", "ask_mark", "name this moment", more),
        KeyAction("marks", "'", "pick_mark", "go to a mark", more),
        KeyAction("copy", "y", "copy_moment", "copy this moment as a link", more),
        KeyAction("command", ":", "ask_command", "type a debugger command, or Python", more, "command"),
        KeyAction("help", "?", "help", "show help for the focused panel", more, "help"),
        KeyAction("quit", "q", "quit", "quit", more, "quit"),
        KeyAction("delete", "delete", "delete", "delete the selected watch, mark or breakpoint", more),
        KeyAction("cancel", "escape", "cancel", "cancel a long operation", more),
        KeyAction("panel-1", "1", "panel(1)", "panel 1: the source", "Panels"),
        KeyAction("panel-2", "2", "panel(2)", "panel 2: stack, threads, tasks", "Panels"),
        KeyAction("panel-3", "3", "panel(3)", "panel 3: locals and watches", "Panels"),
        KeyAction("panel-4", "4", "panel(4)", "panel 4: the heap, its changes, holders", "Panels"),
        KeyAction("panel-5", "5", "panel(5)", "panel 5: the timeline", "Panels"),
        KeyAction(
            "panel-6",
            "6",
            "panel(6)",
            "panel 6: output, console, events, notes; press again for the next tab",
            "Panels",
        ),
    )


def _groups() -> tuple[KeyAction, ...]:
    processes = "Processes"
    return (
        KeyAction("processes", "P", "processes", "select another process of the group", processes),
        KeyAction("jump-to-sender", "<", "jump('sender')", "go to the sender of what is received here", processes),
        KeyAction("jump-to-receiver", ">", "jump('receiver')", "go to the receiver of what is sent here", processes),
        KeyAction(
            "messages", "M", "messages", "show messages and cuts of the group as a space-time diagram", processes
        ),
    )


ACTS = (*_moves(), *_looks(), *_groups(), *_more())
"""All actions, in the order of the help."""


_PRESETS: dict[str, dict[str, str]] = {
    "default": {},
    "pudb": {"finish": "f r", "command": ": !", "panel-3": "3 V", "panel-2": "2 k", "panel-6": "6 o"},
    "gdb": {"start": "g r", "panel-2": "2 w", "panel-3": "3 v", "watch": "a", "history": "V"},
    "vscode": {
        "next": "n f10",
        "step": "s f11",
        "finish": "f shift+f11",
        "continue": "c f5",
        "reverse-next": "N shift+f10",
        "reverse-continue": "C shift+f5",
        "breakpoint": "b f9",
        "search": "/ ctrl+f",
    },
}
"""The keys of other debuggers; all other keys are as in the default."""

PRESETS = tuple(_PRESETS)


def keymap(preset: str = "default", own: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the keys of each action: those of a preset, overridden by the user's `own`, by action.

    A key that is given to one action is taken from its previous one. Raises UsageError for unknown names.
    """
    if preset not in _PRESETS:
        raise UsageError(f"No such keymap: {preset!r}. Available: {', '.join(_PRESETS)}.")
    keys = {each.id: each.keys.split() for each in ACTS}
    for given in (_PRESETS[preset], own or {}):
        wanted: dict[str, str] = {}
        for act, text in given.items():
            if act not in keys:
                raise UsageError(f"No such action: {act!r}. Keys can be assigned to {', '.join(keys)}.")
            for key in text.split():
                if wanted.setdefault(key, act) != act:
                    raise UsageError(f"The key {key!r} is assigned twice: to {wanted[key]!r} and to {act!r}.")
        for act in keys:
            keys[act] = given[act].split() if act in given else [key for key in keys[act] if key not in wanted]
    return {act: " ".join(each) for act, each in keys.items()}


_OF_PANELS = {
    "rows.up": "up k",
    "rows.down": "down j",
    "timeline.left": "left h",
    "timeline.right": "right l",
    "heap.scope": "o O",
}
"""Keys of single panels, by the names of their bindings. A key given to an action is taken from them, too."""


def panel_keymap(keys: Mapping[str, str]) -> dict[str, str]:
    """Return the keys that are left to panels if the actions have `keys`, in Textual's format."""
    taken = {key for each in keys.values() for key in each.split()}
    left = {name: [key for key in own.split() if key not in taken] for name, own in _OF_PANELS.items()}
    return {name: textual_keys(" ".join(each)) for name, each in left.items() if each}


def textual_keys(keys: str) -> str:
    """Return keys by their Textual names: `[ n` becomes `left_square_bracket,n`."""
    return ",".join(_NAMES.get(each, each) for each in keys.split())
