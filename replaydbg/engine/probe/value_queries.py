"""Answers questions about the program from inside it, at a moment: run in a throw-away copy of its process.

Not imported: the core runs it as a script, with inside_fixed.py, inside_search.py, inside_stores.py and
inside_answer.py behind it, with `sys`, and with `argument`, the bytes of a plain value as repr() writes it, and takes
`answer`, bytes of a plain value as docs/reference/format.md has it. The program's frames are those below this one. It
imports nothing that need not be there: what it does costs the reader of every variable, and at the program's end
nothing can be imported.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sys
    from typing import Any

    from replaydbg.engine.probe.immutability import frozen, is_of_fixed_content

    Described = tuple[str, str, str, int, int]
    Question = dict[str, Any]
    argument = b""

    def object_at(address: int, kind: int) -> Any: ...
    def digest_of(value: Any) -> int: ...


LONGEST = 400
MOST = 60


class Text:
    """Takes the place of standard output."""

    encoding, errors = "utf-8", "surrogatepass"

    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, text: Any) -> int:
        self.parts.append(str(text))
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def shown(value: Any, limit: int = LONGEST, depth: int = 3) -> str:
    """Return `value` as text of about `limit` characters: large containers are not shown as a whole."""
    kind = type(value)
    try:
        if kind in (list, tuple, set, frozenset, dict) and (depth == 0 or len(value) > MOST):
            return f"<{kind.__name__} of {len(value):,}>" if depth == 0 else first_of(value, kind, limit, depth)
        if kind in (list, tuple, set, frozenset, dict):
            return first_of(value, kind, limit, depth)
        if kind in (str, bytes, bytearray) and len(value) > limit:
            return f"{cut(repr(value[:limit]), limit)} ({len(value):,} long)"
        if kind is int and value.bit_length() > 4 * limit:
            return f"<int of {value.bit_length():,} bits>"
        return cut(repr(value), limit)
    except BaseException as error:
        return f"<{kind.__name__} whose repr raises {type(error).__name__}: {cut(str(error), 100)}>"


def first_of(value: Any, kind: Any, limit: int, depth: int) -> str:
    left, right = {list: ("[", "]"), tuple: ("(", ")")}.get(kind, ("{", "}"))
    parts: list[str] = []
    used = 0
    for item in value.items() if kind is dict else value:
        if kind is dict:
            part = f"{shown(item[0], 80, depth - 1)}: {shown(item[1], 120, depth - 1)}"
        else:
            part = shown(item, 120, depth - 1)
        used += len(part) + 2
        if parts and (used > limit or len(parts) == MOST):
            return left + ", ".join(parts) + f", ...{right} ({len(value):,} items)"
        parts.append(part)
    if kind is tuple and len(value) == 1:
        return f"({parts[0]},)"
    if kind in (set, frozenset) and not value:
        return repr(value)
    text = left + ", ".join(parts) + right
    return f"frozenset({text})" if kind is frozenset else text


def described(name: Any, value: Any) -> Described:
    kind = type(value)
    return (str(name), kind.__qualname__, shown(value), children(value), digest_of(value))


def children(value: Any) -> int:
    try:
        if isinstance(value, (list, tuple, dict, set, frozenset)):
            return len(value)
    except BaseException:
        return 0
    return len(getattr(value, "__dict__", ())) if type(value).__module__ != "builtins" else 0


# ---- frames ----


def frame_of(question: Question) -> Any:
    lane = question.get("lane")
    if lane is None:
        frame: Any = sys._getframe()
        while frame is not None and frame.f_code.co_filename == "<inside>":
            frame = frame.f_back
    else:
        frame = sys._current_frames().get(0x2C0000000000 + lane % 262144 * 4096)
    for _ in range(question.get("frame", 0)):
        frame = frame.f_back if frame is not None else None
    if frame is None:
        raise LookupError("no such frame")
    return frame


def names_of(frame: Any) -> list[str]:
    code = frame.f_code
    return [*code.co_varnames, *code.co_cellvars, *code.co_freevars]


def variables(question: Question) -> list[Described]:
    frame = frame_of(question)
    found = frame.f_globals if question.get("globals") else frame.f_locals
    hidden = ("__builtins__", "__annotations__", "__doc__", "__loader__", "__spec__", "__cached__")
    return [described(name, value) for name, value in list(found.items()) if name not in hidden][:2000]


def arguments(question: Question) -> list[Described]:
    """The parameters of a frame's function, in order, as far as they still have values."""
    frame = frame_of(question)
    code = frame.f_code
    known = frame.f_locals
    number = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return [described(name, known[name]) for name in code.co_varnames[:number] if name in known]


# ---- evaluation ----


def evaluate(question: Question) -> dict[str, Any]:
    """An expression's value, or what a statement prints; both with what was printed and what was raised."""
    frame = frame_of(question)
    source = question["source"]
    # One dictionary for both: so comprehensions and lambdas in it see local variables. It is thrown away.
    known = frame.f_locals
    names = {**frame.f_globals, **known}
    names.setdefault("locals", lambda: known)
    names.setdefault("globals", lambda: frame.f_globals)
    out = sys.stdout = sys.stderr = Text()
    try:
        try:
            code, is_expression = compile(source, "<expression>", "eval"), True
        except SyntaxError:
            code, is_expression = compile(source, "<statement>", "exec"), False
        value = eval(code, names)
        told = described("", value) if is_expression else None
        truth = bool(value) if question.get("truth") else None
        return {"value": told, "output": "".join(out.parts)[:100_000], "error": None, "truth": truth}
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
        return {"value": None, "output": "".join(out.parts)[:100_000], "error": cut(said, 2000), "truth": None}


def items(question: Question) -> list[Described]:
    """The parts of a value: its attributes, or its items."""
    frame = frame_of(question)
    value = eval(compile(question["source"], "<expression>", "eval"), {**frame.f_globals, **frame.f_locals})
    has_own_items = isinstance(value, (dict, list, tuple, set, frozenset))
    return [described(name, each) for name, each in (items_of if has_own_items else attributes_of)(value)]


def items_of(value: Any) -> list[tuple[str, Any]]:
    """The items of a container, each with what is written behind the container's name to get it."""
    if isinstance(value, dict):
        return [(f"[{shown(key, 80)}]", each) for key, each in list(value.items())[:1000]]
    if isinstance(value, (list, tuple)):
        return [(f"[{at}]", each) for at, each in enumerate(value[:1000])]
    return [("", each) for each in list(value)[:1000]] if isinstance(value, (set, frozenset)) else []


def attributes_of(value: Any) -> list[tuple[str, Any]]:
    found = [(f".{name}", each) for name, each in list(getattr(value, "__dict__", {}).items())]
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            # As the interpreter names those that begin with two underscores.
            is_private = name.startswith("__") and not name.endswith("__")
            held = f"_{kind.__name__.lstrip('_')}{name}" if is_private else name
            if name not in ("__dict__", "__weakref__") and hasattr(value, held):
                found.append((f".{name}", getattr(value, held)))
    return found


def change(question: Question) -> None:
    """Run a statement in the program itself, in the scope of a frame."""
    frame = frame_of(question)
    # Before 3.13 a second look at f_locals would fetch the old values again.
    known = frame.f_locals
    exec(compile(question["source"], "<change>", "exec"), frame.f_globals, known)
    if sys.version_info < (3, 13) and known is not frame.f_globals:
        import ctypes

        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    return None


def outgoing(question: Question) -> tuple[Any, bytes]:
    """What is known of a value, and the value as bytes."""
    frame = frame_of(question)
    names = {**frame.f_globals, **frame.f_locals}
    value = eval(compile(question["source"], "<expression>", "eval"), names)
    space = {"sys": sys, "shown": shown, "value": value, "path": question["path"], "__name__": "replaydbg outgoing"}
    exec(compile(question["script"], "<inside>", "exec"), space)
    return space["head"], space["data"]


# ---- what a path of attributes and items begins with ----


def place(question: Question) -> tuple[str, Any]:
    """Where a variable that is seen in a frame lives: its function's own, or a module's."""
    frame, name = frame_of(question), question["name"]
    code = frame.f_code
    if name in names_of(frame) or (frame.f_locals is not frame.f_globals and name in frame.f_locals):
        return ("local", name in code.co_freevars)
    if name in frame.f_globals:
        home = frame.f_globals.get("__name__")
        module = sys.modules.get(home)
        if module is None or getattr(module, "__dict__", None) is not frame.f_globals:
            return ("lost", f"{name} is a global of code without a module")
        return ("global", home)
    return ("lost", f"no variable {name} here")


def kinds(question: Question) -> str | None:
    """What is in the way of looking a path up without running Python: at each step None, or why it cannot be."""
    frame = frame_of(question)
    value = eval(compile(question["source"], "<expression>", "eval"), {**frame.f_globals, **frame.f_locals})
    for kind, key in question["steps"]:
        if kind == "attribute":
            hindrance = computed(value, key)
            if hindrance is not None:
                return hindrance
        elif not has_items(value):
            return f"a {type(value).__name__} computes its items"
        try:
            value = getattr(value, key) if kind == "attribute" else value[key]
        except (AttributeError, LookupError):
            return None  # it may have been there
    return None


def has_items(value: Any) -> bool:
    """Whether its items are read as the core reads them, without running Python: see item_at in watch.c."""
    kind = type(value)
    base = list if isinstance(value, list) else tuple if isinstance(value, tuple) else None
    own: Any = next((each for each in kind.__mro__ if "__getitem__" in each.__dict__), None)
    return own is base if base is not None else isinstance(value, dict)


def computed(value: Any, name: str) -> str | None:
    """Why an attribute cannot be followed: it is not held by the object itself or by its class."""
    kind = type(value)
    if isinstance(value, (type, type(sys))):
        return None
    of_type = next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)
    if isinstance(of_type, property):
        return f"{name} is a property of {kind.__name__}, which is computed"
    is_slot = type(of_type).__name__ == "member_descriptor"
    if name in getattr(value, "__dict__", ()) or is_slot:
        return None
    if of_type is None and hasattr(value, name):
        return f"a {kind.__name__} computes its attribute {name}"
    if hasattr(type(of_type), "__get__"):
        return f"{name} is computed by a {type(of_type).__name__} of {kind.__name__}"
    return None


def opaque(question: Question) -> str | None:
    """The type that keeps content of a value where only its own C code can read it; None: there is none."""
    frame = frame_of(question)
    value = eval(compile(question["source"], "<expression>", "eval"), {**frame.f_globals, **frame.f_locals})
    followed = (object, list, tuple, dict, set, frozenset, bytearray, type, type(sys), *deques())
    for base in type(value).__mro__ if mutable(question) else ():
        methods = (type(each).__name__ for each in base.__dict__.values())
        if base in followed or base.__module__ == "typing" or is_of_fixed_content(base):
            continue
        if "method_descriptor" in methods:
            return None if issubclass(base, followed[1:]) else str(base.__name__)
    return None


def mutable(question: Question) -> bool:
    """Whether a value may change by itself."""
    frame = frame_of(question)
    return not frozen(eval(compile(question["source"], "<expression>", "eval"), {**frame.f_globals, **frame.f_locals}))


PLAIN = (int, float, complex, str, bytes, bool, type(None))


def content(question: Question) -> dict[str, Any] | None:
    """What an object and each of its parts hold, as numbers: two that differ have changed.

    None: it cannot change; an equal one may lie elsewhere.
    """
    value: Any = object_at(*question["object"])
    if type(value) in PLAIN or frozen(value):
        return None  # what a path or a fraction keeps of its own work is no content
    parts = [*items_of(value), *attributes_of(value)]
    return {
        "type": type(value).__name__,
        "text": shown(value),
        "held": held_by(value),
        "parts": {name: (held_by(each), shown(each)) for name, each in parts if name},
    }


def held_by(value: Any) -> int:
    """A number for what an object holds, and what the containers in it hold; of other objects, which ones they are."""
    kinds_of_items = (list, tuple, set, frozenset, *deques())
    held: list[Any] = []
    left: list[Any] = [value, *(each for _, each in attributes_of(value))]
    seen: set[int] = set()
    while left and len(held) < 100_000:
        each = left.pop()
        base: Any = next((kind for kind in (*kinds_of_items, dict) if isinstance(each, kind)), None)
        if base is not None:
            parts = [part for item in dict.items(each) for part in item] if base is dict else base.__iter__(each)
            left += () if id(each) in seen else parts
            seen.add(id(each))
        held.append(each if type(each) in PLAIN else bytes(each) if type(each) is bytearray else id(each))
    return hash(tuple(held))


def deques() -> tuple[Any, ...]:
    """The type of deques, if there are any."""
    found = vars(sys.modules["collections"]).get("deque") if "collections" in sys.modules else None
    return (found,) if isinstance(found, type) else ()


def of_object(question: Question) -> Described:
    """An object that is known by where it lies."""
    return described("", object_at(*question["object"]))


# ---- types of exceptions ----


def types_named(question: Question) -> list[str]:
    """The full names of the types of exceptions that have a name, or that a module, builtins first, calls so."""
    name = question["name"]
    found = [each for each in map(full_name, all_exceptions()) if each == name or each.endswith(f".{name}")]
    parts = name.split(".")
    for at in range(len(parts)):
        value = reached(namespace(".".join(parts[:at])), parts[at:])
        if type in type(value).__mro__ and BaseException in type.__dict__["__mro__"].__get__(value):
            found.append(full_name(value))
    return sorted(set(found))


def all_exceptions() -> list[Any]:
    found: dict[int, Any] = {}
    left: list[Any] = [BaseException]
    while left:
        kind = left.pop()
        if id(kind) not in found:
            found[id(kind)] = kind
            left += type.__subclasses__(kind)
    return list(found.values())


def full_name(kind: Any) -> str:
    """As lineage.c writes it."""
    try:
        module = type.__dict__["__module__"].__get__(kind)
    except AttributeError:
        module = None
    name = str(type.__dict__["__qualname__"].__get__(kind))
    return f"{module}.{name}" if type(module) is str and module else name


def namespace(module: str) -> Any:
    """What a module's names mean; without a module, those of the program and of builtins."""
    main: Any = sys.modules.get("__main__")
    known = getattr(main, "__dict__", {})
    spec, file = known.get("__spec__"), known.get("__file__")
    if not module:
        return {**vars(sys.modules["builtins"]), **known}
    if module == getattr(spec, "name", str(file).rpartition("/")[2].removesuffix(".py")):
        return known
    found = sys.modules.get(module)
    return vars(found) if isinstance(found, type(sys)) else {}


def reached(names: Any, parts: list[str]) -> Any:
    """What lies in classes that lie in one another; None: it does not exist."""
    value: Any = None
    for each in parts:
        value = names.get(each)
        names = type.__dict__["__dict__"].__get__(value) if type in type(value).__mro__ else {}
    return value


# ---- asyncio ----


def tasks(question: Question) -> list[Any]:
    """Each asyncio task that is not done, with the coroutines that wait for each other in it, outermost first."""
    asyncio = sys.modules.get("asyncio.tasks")
    if asyncio is None:
        return []
    found = []
    known: Any = getattr(asyncio, "_scheduled_tasks", None) or getattr(asyncio, "_all_tasks", ())
    for task in list(getattr(known, "data", ())) or list(known):
        task = task() if type(task).__name__ == "ReferenceType" else task
        if task is not None and not task.done():
            found.append((str(task.get_name()), chain(task.get_coro()), shown(getattr(task, "_fut_waiter", None), 200)))
    for task in list(getattr(asyncio, "_eager_tasks", ())):
        found.append((str(task.get_name()), chain(task.get_coro()), ""))
    return sorted(found)


def chain(coroutine: Any) -> list[Any]:
    return [(each.f_code.co_filename, each.f_lineno or 0, each.f_code.co_qualname) for each in frames_of(coroutine)]


def frames_of(coroutine: Any) -> list[Any]:
    frames: list[Any] = []
    while coroutine is not None and len(frames) < 100:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        frame = frame or getattr(coroutine, "ag_frame", None)
        if frame is not None:
            frames.append(frame)
        inner = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
        coroutine = inner or getattr(coroutine, "ag_await", None)
    return frames


def exception(question: Question) -> list[Any]:
    """The exception that is being handled where the lane stands, outermost cause last."""
    found: list[Any] = []
    error = sys.exc_info()[1]
    while error is not None and len(found) < 20:
        found.append((type(error).__qualname__, cut(str(error), 1000)))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found
