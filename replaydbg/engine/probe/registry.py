"""The registry: the function that answers each query, by the tag that `replaydbg.engine.queries` gives it."""

from __future__ import annotations

import sys

from replaydbg.engine.probe.data_frames import cell, cell_stores, steps_to_data_frame
from replaydbg.engine.probe.encoding import encoded
from replaydbg.engine.probe.evaluation import change, evaluate, items, outgoing
from replaydbg.engine.probe.exception_names import types_named
from replaydbg.engine.probe.frames import (
    arguments,
    cached_source,
    exception,
    module_variables,
    modules,
    spans,
    variables,
)
from replaydbg.engine.probe.object_content import content, mutable, of_object, opaque
from replaydbg.engine.probe.offered_words import offer_attributes, offer_keys, offer_names
from replaydbg.engine.probe.passages import at_lines, passing
from replaydbg.engine.probe.predicates import judged, judging, value_in_module, value_of_part
from replaydbg.engine.probe.store_passages import storing
from replaydbg.engine.probe.stores import stores, waiting
from replaydbg.engine.probe.variable_homes import entry, kinds, place, rows, sequence
from replaydbg.engine.probe.waiting_tasks import following, task_keys, tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HANDLERS: dict[str, Callable[[Any], object]] = {
    "variables": variables,
    "arguments": arguments,
    "evaluate": evaluate,
    "items": items,
    "change": change,
    "place": place,
    "kinds": kinds,
    "rows": rows,
    "entry": entry,
    "sequence": sequence,
    "data_frame": steps_to_data_frame,
    "cell": cell,
    "cell_stores": cell_stores,
    "tasks": tasks,
    "task_keys": task_keys,
    "offer_names": offer_names,
    "offer_attributes": offer_attributes,
    "offer_keys": offer_keys,
    "modules": modules,
    "cached_source": cached_source,
    "module_variables": module_variables,
    "exception": exception,
    "mutable": mutable,
    "opaque": opaque,
    "content": content,
    "of_object": of_object,
    "outgoing": outgoing,
    "types_named": types_named,
    "stores": stores,
    "spans": spans,
    "waiting": waiting,
    "judged": judged,
    "judging": judging,
    "passing": passing,
    "at_lines": at_lines,
    "storing": storing,
    "following": following,
    "value_of_part": value_of_part,
    "value_in_module": value_in_module,
}


def answer_to(argument: bytes) -> bytes:
    """Return the encoded answer to a query, or the reason why it failed."""
    fields = eval(argument.decode("utf-8", "surrogatepass"))
    tag = fields.pop("do")
    # types.SimpleNamespace, without an import.
    query = type(sys.implementation)(**fields)
    try:
        return encoded(HANDLERS[tag](query))
    except BaseException as error:
        return encoded({"failed": f"{type(error).__name__}: {error}"})
