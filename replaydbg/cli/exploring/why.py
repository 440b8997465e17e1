"""`replaydbg why`: show the last write of a value, and the events of that line."""

from __future__ import annotations

import argparse
from typing import Any

from replaydbg.cli.common.opening import add_place, add_quiet, opened_at
from replaydbg.cli.common.output import add_json, add_recording, print_json
from replaydbg.debugger import Session
from replaydbg.debugger.session_results import LastWrite, Origin
from replaydbg.errors import quoted
from replaydbg.render import texts
from replaydbg.render.events_json import event_facts
from replaydbg.render.moments_json import moment_facts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_recording(parser)
    parser.add_argument("expression", help="a variable, attribute or item, such as order.lines[0].price")
    add_place(parser)
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show the last write of a value; return 1 if it was not written."""
    with opened_at(args) as view:
        session = view.session
        answer = session.run.why(args.expression, **view.at)
        if args.json:
            print_json(_facts(session, answer))
        else:
            follow = f"replaydbg why {quoted(args.recording)} {{quoted}} --at {{moment}}"
            for line in texts.why_lines(session, answer, follow=follow):
                view.screen.line(line)
        return 0 if answer.moment is not None else 1


def _origin(origin: Origin) -> dict[str, Any]:
    returned = (
        {"moment": texts.moment_text(origin.moment), "count": origin.count} if origin.moment is not None else None
    )
    if returned is not None:
        returned |= {"file": origin.file, "line": origin.line, "function": origin.function, "source": origin.source}
    return {
        "text": origin.text,
        "kind": origin.kind,
        "is_same": origin.is_same,
        "events": list(origin.events),
        "returned": returned,
        "parts": [_origin(each) for each in origin.parts],
    }


def _facts(session: Session, why: LastWrite) -> dict[str, Any]:
    if why.moment is None:
        return {"expression": why.expression, "written": False, "note": why.note or None}
    events = texts.events_of(session, min(why.events), max(why.events)) if why.events else []
    return {
        "expression": why.expression,
        "written": True,
        **moment_facts(session, why.count, why.moment),
        "lane": why.lane,
        "file": why.file,
        "line": why.line,
        "function": why.function,
        "source": why.source,
        "before": why.before or None,
        "after": why.after or None,
        "parts": [
            {"name": each.name, "before": each.before or None, "after": each.after or None} for each in why.parts
        ],
        "is_argument": why.is_argument,
        "is_binding": why.is_binding,
        "is_equal": why.is_equal,
        "changed": _facts(session, why.changed) if why.changed is not None else None,
        "note": why.note or None,
        "origins": [_origin(each) for each in why.origins],
        "unknown": why.unknown or None,
        "events": [event_facts(each) for each in events if each.number in why.events],
        "names": list(texts.names_to_follow(why)),
        "content": _facts(session, why.content) if why.content is not None else None,
    }
