"""Find passages of lines that may store to one of several places, in the process that passes the lines.

The expressions are guarded, like those of `passages`; the debugger examines refused passages in a copy.
"""

from __future__ import annotations

from replaydbg.engine.probe.core import address_of, answer_passages_by, names_here, object_at, run, skip_passages
from replaydbg.engine.probe.elements import is_key, ndarrays, shares_memory
from replaydbg.engine.probe.encoding import encoded
from replaydbg.engine.probe.module_names import names_of_all
from replaydbg.engine.probe.passages import GUARDS, REFUSED, Refused
from replaydbg.engine.probe.predicates import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from replaydbg.engine import queries


def storing(query: queries.FindStores) -> bytes:
    """Make the function that the core calls at each hit of a breakpoint."""
    asked = [passage_of(query.places, stores) for stores in query.asked]
    skip_passages([skipped(query.places, stores) for stores in query.asked])
    answer_passages_by(lambda number: asked[number - 1]())
    return b""


def skipped(places: Any, stores: Any) -> tuple[tuple[str, ...], tuple[int, ...]] | None:
    """Return names and addresses: if the names mean other objects, there is no store. None: names do not decide it."""
    names = {container: None for _, container, _ in stores}
    if not all(name.isidentifier() for name in names) or any(is_array(places[number]) for number, _, _ in stores):
        return None
    return tuple(names), tuple({places[number][0][0]: None for number, _, _ in stores})


def is_array(place: Any) -> bool:
    """Whether other objects may show the memory of the object that has the place."""
    (_, kind), _ = place
    return any(kind == address_of(each) for each in ndarrays())


def passage_of(places: Any, stores: Any) -> Callable[[], bytes | None]:
    """Return a function that returns the numbers of the places to which a passage may store; None: there is none."""
    unknown = {number for number, container, _ in stores if not container}
    by_container: dict[str, list[tuple[int, str | None]]] = {}
    for number, container, key in stores:
        if container:
            by_container.setdefault(container, []).append((number, key))
    codes = {
        source: compiled(source, "<expression>", "eval")
        for source in {*by_container, *(key for _, _, key in stores)}
        if source
    }
    wanted = tuple({name for code in codes.values() for name in names_of_all(code)})

    def passed() -> bytes | None:
        names = names_here(wanted)
        if names is None:
            return REFUSED
        names.update(GUARDS)
        found = set(unknown)
        try:
            for container, targets in by_container.items():
                found |= met(codes, names, places, container, targets)
        except Refused:
            return REFUSED
        return encoded(("", ",".join(map(str, sorted(found))))) if found else None

    return passed


def met(codes: dict[str, CodeType], names: dict[str, Any], places: Any, container: str, targets: Any) -> set[int]:
    """Return the numbers of the places to which the stores into this container may store. Raises Refused."""
    try:
        owner = run(codes[container], names)
    except Refused:
        raise
    except (NameError, AttributeError, LookupError):
        return set()  # the statement fails as well
    except BaseException:
        return {number for number, _ in targets}
    return {number for number, key in targets if may_be(owner, places[number], key, codes, names)}


def may_be(owner: Any, place: Any, key: str | None, codes: dict[str, CodeType], names: dict[str, Any]) -> bool:
    """Whether a store with this key into `owner` may be one to the place. Raises Refused."""
    address, wanted = place
    try:
        wanted_owner = object_at(*address)
        if owner is not wanted_owner:
            return shares_memory(owner, wanted_owner)
    except LookupError:
        raise Refused from None
    if not key:
        return True
    try:
        return is_key(run(codes[key], names), wanted, owner, is_only_selected=True) is not False
    except Refused:
        raise
    except (NameError, AttributeError, LookupError):
        return False
    except BaseException:
        return True
