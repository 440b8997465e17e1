"""Gives the answer: the end of the script that inside.py begins."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.engine.inside import (
        argument,
        arguments,
        change,
        content,
        evaluate,
        exception,
        items,
        kinds,
        mutable,
        of_object,
        opaque,
        outgoing,
        place,
        tasks,
        types_named,
        variables,
    )
    from replaydbg.engine.inside_search import judged, judging, value_of_part
    from replaydbg.engine.inside_stores import stores, waiting

DOERS = {
    each.__name__: each
    for each in (
        variables,
        arguments,
        evaluate,
        items,
        change,
        place,
        kinds,
        tasks,
        exception,
        mutable,
        opaque,
        content,
        of_object,
        outgoing,
        types_named,
        stores,
        waiting,
        judged,
        judging,
        value_of_part,
    )
}
_question = eval(argument.decode("utf-8", "surrogatepass"))
try:
    _told = DOERS[_question["do"]](_question)
except BaseException as _error:
    _told = {"failed": f"{type(_error).__name__}: {_error}"}
answer = _told if type(_told) is bytes else repr(_told).encode("utf-8", "surrogatepass")
