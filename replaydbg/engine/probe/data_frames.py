"""Cells and columns of pandas' data frames and series: their values, and what changes when they may have changed.

A label is resolved here, in a copy of the program, by pandas' own code. Watched are paths that the core follows without
running Python: the manager of a data frame, its axes, its tuple of blocks, and the item of the array that has the cell.
Other operations than a store move a cell to another block or array; the debugger reads the cell again and compares.
"""

from __future__ import annotations

from replaydbg.engine.probe.core import field_of, object_at
from replaydbg.engine.probe.elements import MOST_HASHED, has_items, is_of_one_size, named, ndarrays
from replaydbg.engine.probe.frames import frame_of, names_seen_in, value_in
from replaydbg.engine.probe.value_text import shown
from replaydbg.engine.probe.variable_homes import computed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from replaydbg.engine import cell_queries as queries

    PlainStep = tuple[str, str, tuple[int, ...]]
    """A step to a part: its kind, a name, numbers."""

BY_LABEL, BY_POSITION = ("loc", "at"), ("iloc", "iat")
MOST_COMPARED = 1 << 20
"""Characters of a cell's text that are compared."""


class Untracked(Exception):
    """A cell cannot be tracked; its text is the reason."""


def steps_to_data_frame(query: queries.FindDataFrame) -> int | None:
    """Return how many steps lead to a data frame or series of pandas; None: they lead to none."""
    if not data_frames():
        return None
    value = value_in(frame_of(query), query.source)
    for number, (kind, key) in enumerate(query.steps):
        if isinstance(value, data_frames()):
            return number
        if kind == "attribute" and computed(value, key) is not None:
            return None
        if kind == "item" and not has_items(value, key):
            return None
        try:
            value = getattr(value, key) if kind == "attribute" else value[key]
        except (AttributeError, LookupError, TypeError):
            return None
    return None


def data_frames() -> tuple[Any, ...]:
    return (*named("pandas", "DataFrame"), *named("pandas", "Series"))


def cell(query: queries.ReadCell) -> tuple[str, int, list[list[PlainStep]], str]:
    """Return a cell or column as text and as a digest, the parts to watch, and why it cannot be tracked."""
    owner: Any = object_at(*query.object)
    if not isinstance(owner, data_frames()):
        return "", 0, [], ""
    try:
        manager = object.__getattribute__(owner, "__dict__")["_mgr"]
        at = [step_to(owner, "_mgr", manager)]
        blocks = [*at, step_to(manager, "blocks", manager.blocks)]
        parts = [at, blocks, [*at, step_to(manager, "axes", manager.axes)]]
    except (AttributeError, KeyError, Untracked):
        return "", 0, [], "this version of pandas keeps its values in another way"
    try:
        column, row = CellSelection(owner, manager.axes).of(query.steps)
        number, inner = (0, 0) if column is None else (int(manager.blknos[column]), int(manager.blklocs[column]))
        block = manager.blocks[number]
        values = block.values
        text, digest = content(values, inner, row)
    except Untracked as error:
        return "", 0, parts, str(error)
    except LookupError:
        return "", 0, parts, ""  # there is no such label or position
    try:
        path = [*blocks, ("item", "", (number,)), step_to(block, "values", values)]
        found = [[*path, *each] for each in parts_of(values, inner, row)]
    except Untracked as error:
        return text, digest, parts, str(error)
    return text, digest, [*parts, *found], ""


# ---- from labels to positions ----


class CellSelection:
    """The positions of the column and the row that steps behind a data frame or series select."""

    def __init__(self, owner: Any, axes: Any) -> None:
        self.owner = owner
        self.columns: Any = axes[0] if len(axes) == 2 else None
        self.index = axes[-1]
        self.column: int | None = None
        self.row: int | None = None

    def of(self, steps: Any) -> tuple[int | None, int | None]:
        """Return the column, None of a series, and the row, None of a column. Raises Untracked, LookupError."""
        accessor = ""
        for kind, key in steps:
            if kind == "attribute" and not accessor and key in (*BY_LABEL, *BY_POSITION):
                accessor = key
            elif kind == "attribute":
                if accessor or self.has_column() or hasattr(type(self.owner), key):
                    raise Untracked(f"{key} of a {type(self.owner).__name__} is computed")
                self.column = position(self.columns, key, "")
            else:
                self.take(accessor, key)
                accessor = ""
        if accessor or (self.row is not None and not self.has_column()):
            raise Untracked("it names more than one cell; add a row and a column")
        return self.column, self.row

    def has_column(self) -> bool:
        return self.columns is None or self.column is not None

    def take(self, accessor: str, key: Any) -> None:
        if self.has_column():
            if self.row is not None:
                raise Untracked("items of a cell are not tracked")
            self.row = position(self.index, key, accessor, is_series=True)
        elif not accessor:
            if self.row is None and computes_items(self.owner):
                raise Untracked(f"a {type(self.owner).__name__} computes its items")
            self.column = position(self.columns, key, "")
        elif self.row is not None:  # df.loc[3].loc["amount"]
            self.column = position(self.columns, key, accessor)
        elif type(key) is tuple and len(key) == 2 and not is_whole_label(self.index, key):
            self.row = position(self.index, key[0], accessor)
            self.column = position(self.columns, key[1], accessor)
        else:
            self.row = position(self.index, key, accessor)


def is_whole_label(index: Any, key: Any) -> bool:
    """Whether a tuple is one label of an index of several levels."""
    return index.nlevels > 1 and not isinstance(key[0], tuple)


def computes_items(owner: Any) -> bool:
    own: Any = next((each for each in type(owner).__mro__ if "__getitem__" in each.__dict__), None)
    return own is not None and own not in data_frames() and not str(own.__module__).startswith("pandas.")


def position(axis: Any, key: Any, accessor: str, *, is_series: bool = False) -> int:
    """Return the position of a label, or of a position that may be negative. Raises LookupError, Untracked."""
    if accessor in BY_POSITION:
        return in_bounds(axis, key)
    try:
        found = axis.get_loc(key)
    except (KeyError, TypeError, ValueError) as error:
        # Before pandas 3, numbers are positions in a series whose labels are no numbers.
        if is_series and not accessor and type(key) is int and getattr(axis, "_should_fallback_to_positional", False):
            return in_bounds(axis, key)
        raise LookupError(key) from error
    if type(found) is not int:
        raise Untracked(f"the label {key!r} means several positions")
    return found


def in_bounds(axis: Any, key: Any) -> int:
    if type(key) is not int:
        raise Untracked(f"{key!r} is not a position")
    if not -len(axis) <= key < len(axis):
        raise LookupError(key)
    return key % len(axis)


# ---- the value ----


def content(values: Any, inner: int, row: int | None) -> tuple[str, int]:
    """Return the text of a cell or column, and a digest of all of it. Raises Untracked, LookupError."""
    line = values[inner] if values.ndim == 2 else values
    if row is not None:
        whole = repr(line[row])
        return shown(line[row]), hash(whole[:MOST_COMPARED]) & 0xFFFFFFFFFFFF
    if isinstance(line, ndarrays()) and line.dtype.kind != "O":
        return shown(line.tolist()), hash((line.dtype.char, line.tobytes())) & 0xFFFFFFFFFFFF
    items = list(line)
    return shown(items), hash(repr(items)) & 0xFFFFFFFFFFFF


# ---- the parts to watch ----


def parts_of(values: Any, inner: int, row: int | None) -> list[list[PlainStep]]:
    """Return the paths from a block's values to what changes with a cell or column. Raises Untracked."""
    if isinstance(values, ndarrays()):
        return [in_array(values, inner, row)]
    held = getattr(values, "__dict__", {})
    base = next((each for each in type(values).__mro__ if each.__name__ == "NDArrayBacked"), None)
    if base is not None:
        own = values._ndarray
        dtype = [step_to(values, "_dtype", values._dtype)]  # the names of categories
        return [dtype, [step_to(values, "_ndarray", own), *in_array(own, inner, row)]]
    if "_pa_array" in held:  # pyarrow's arrays never change: a store replaces them
        return [[step_to(values, "_pa_array", held["_pa_array"])]]
    if isinstance(held.get("_data"), ndarrays()) and isinstance(held.get("_mask"), ndarrays()):
        return [[step_to(values, name, held[name]), *in_array(held[name], inner, row)] for name in ("_data", "_mask")]
    raise Untracked(f"a {type(values).__name__} keeps its values in a way that is not tracked")


def in_array(array: Any, inner: int, row: int | None) -> list[PlainStep]:
    """Return the steps into an array: to one item, to a row, or to all of it, which take none."""
    if not is_of_one_size(array):
        raise Untracked(f"values of type {array.dtype} are not tracked")
    if row is None and array.nbytes // (len(array) if array.ndim == 2 else 1) > MOST_HASHED:
        raise Untracked("the column has more than 4 MiB; name a cell of it")
    numbers = [inner] if array.ndim == 2 else []
    numbers += [] if row is None else [row]
    return [("cell", "", tuple(numbers))] if numbers else []


def step_to(owner: Any, name: str, value: Any) -> PlainStep:
    """Return the step to an attribute: what an instance has, or what its type in C keeps. Raises Untracked."""
    if name in getattr(owner, "__dict__", {}):
        return ("attribute", name, ())
    base = next((each for each in type(owner).__mro__ if name in each.__dict__), None)
    if base is not None and type(base.__dict__[name]).__name__ == "member_descriptor":
        return ("attribute", name, ())
    offset = field_of(owner, base, value) if base is not None else 0
    if base is None or not offset:
        raise Untracked(f"a {type(owner).__name__} keeps its values in a way that is not tracked")
    return ("field", f"{base.__module__}.{base.__qualname__}", (offset,))


# ---- stores by the program's own statements ----


def cell_stores(query: queries.MatchCellStores) -> list[bool | None]:
    """For each target of the line that is about to run, return whether it is the cell; None: unknown."""
    owner: Any = object_at(*query.object)
    names = names_seen_in(frame_of(query)) | {"__key__": ItemKeyReader()}
    return [is_stored(owner, query.steps, names, *each) for each in query.targets]


class ItemKeyReader:
    """Returns the key of an item, which may be a slice."""

    def __getitem__(self, key: Any) -> Any:
        return key


def is_stored(owner: Any, steps: Any, names: Any, container: str, key: str | None) -> bool | None:
    base, _, accessor = container.rpartition(".")
    if accessor not in (*BY_LABEL, *BY_POSITION):
        base, accessor = container, ""
    try:
        if eval(base, dict(names)) is not owner:
            return False
        axes = owner._mgr.axes
        column, row = CellSelection(owner, axes).of(steps)
        return covers(axes, accessor, eval(key, dict(names)), column, row) if key else None
    except (NameError, AttributeError, LookupError):
        return False  # the statement fails as well, or makes a new label
    except BaseException:
        return None


def covers(axes: Any, accessor: str, key: Any, column: int | None, row: int | None) -> bool:
    """Whether a store with a key writes to a cell, or into a column."""
    if len(axes) == 1:
        return has(axes[0], accessor or "loc", key, row)
    if accessor:
        is_pair = type(key) is tuple and len(key) == 2 and not is_whole_label(axes[1], key)
        rows, columns = key if is_pair else (key, slice(None))
        return has(axes[0], accessor, columns, column) and has(axes[1], accessor, rows, row)
    if isinstance(key, slice) or str(getattr(key, "dtype", "")) == "bool":
        return has(axes[1], "loc", key, row)  # df[mask] selects rows
    return has(axes[0], "loc", key, column)


def has(axis: Any, accessor: str, key: Any, at: int | None) -> bool:
    """Whether a key selects a position of an axis; None: any one."""
    (series,) = named("pandas", "Series")
    positions = series(range(len(axis)), index=axis)
    found = (positions.iloc if accessor in BY_POSITION else positions.loc)[key]
    selected = list(found) if isinstance(found, series) else [found]
    return bool(selected) if at is None else at in selected
