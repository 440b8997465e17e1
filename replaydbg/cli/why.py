"""`replaydbg why`: show the last write of a value, and the events of that line."""

from __future__ import annotations

import argparse
from typing import Any

from replaydbg.cli.events import event_facts
from replaydbg.cli.opening import add_place, add_quiet, moment_facts, opened_at
from replaydbg.cli.output import add_json, add_recording, print_json
from replaydbg.debugger import Session
from replaydbg.debugger.results import LastWrite, Origin
from replaydbg.errors import quoted
from replaydbg.render import texts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("expression", help="a variable, attribute or item, such as order.lines[0].price")
    add_place(parser)
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the last write of a value; return 1 if it was not written."""
    with opened_at(args) as prompt:
        session = prompt.view.session
        told = session.run.why(args.expression, **prompt.view.at)
        if args.json:
            print_json(_facts(session, told))
        else:
            follow = f"replaydbg why {quoted(args.recording)} {{quoted}} --at {{moment}}"
            for line in texts.why_lines(session, told, follow=follow):
                prompt.view.screen.line(line)
        return 0 if told.moment is not None else 1


def _origin(told: Origin) -> dict[str, Any]:
    returned = {"moment": texts.moment_text(told.moment), "count": told.count} if told.moment is not None else None
    if returned is not None:
        returned |= {"file": told.file, "line": told.line, "function": told.function, "source": told.source}
    return {
        "text": told.text,
        "kind": told.kind,
        "is_same": told.is_same,
        "events": list(told.events),
        "returned": returned,
        "parts": [_origin(each) for each in told.parts],
    }


def _facts(session: Session, told: LastWrite) -> dict[str, Any]:
    if told.moment is None:
        return {"expression": told.expression, "written": False, "note": told.note or None}
    events = texts.events_of(session, min(told.events), max(told.events)) if told.events else []
    return {
        "expression": told.expression,
        "written": True,
        **moment_facts(session, told.count, told.moment),
        "lane": told.lane,
        "file": told.file,
        "line": told.line,
        "function": told.function,
        "source": told.source,
        "before": told.before or None,
        "after": told.after or None,
        "parts": [
            {"name": each.name, "before": each.before or None, "after": each.after or None} for each in told.parts
        ],
        "is_argument": told.is_argument,
        "is_binding": told.is_binding,
        "is_equal": told.is_equal,
        "changed": _facts(session, told.changed) if told.changed is not None else None,
        "note": told.note or None,
        "origins": [_origin(each) for each in told.origins],
        "unknown": told.unknown or None,
        "events": [event_facts(each) for each in events if each.number in told.events],
        "names": list(texts.names_to_follow(told)),
        "content": _facts(session, told.content) if told.content is not None else None,
    }
