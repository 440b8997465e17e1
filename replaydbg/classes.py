# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202, ANN204, D103 - type checkers see the names of the standard library
"""`NamedTuple` and `dataclass` for modules that each recording or replay imports: the same, but cheap to define.

`typing` and `dataclasses` take 10 ms to import, and up to a millisecond for each class: they compile its annotations,
and methods that may never be called. Here a class is made from the names of its fields, and its `__init__` is compiled
for its first object. A type checker sees the functions of the standard library.

Only what these modules need is supported: annotations as text (`from __future__ import annotations`), data classes with
`slots=True` and without `__post_init__`, and no base class that has fields.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import asdict as asdict
    from dataclasses import astuple as astuple
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple

    class _TupleMaker(type):
        def __new__(cls, name, bases, names):
            fields = names.get("__annotations__", {})
            defaults = [names[each] for each in fields if each in names]
            made = namedtuple(name, fields, defaults=defaults, module=names["__module__"])
            for key, value in names.items():
                if key not in fields and key != "__module__":
                    setattr(made, key, value)
            return made

    class _Base:
        def __mro_entries__(self, bases):
            return (_tuple_base,)

    _tuple_base = type.__new__(_TupleMaker, "NamedTuple", (), {})
    NamedTuple = _Base()

    class _Field:
        def __init__(self, default_factory, compare, repr, default):
            self.default_factory, self.compare, self.repr, self.default = default_factory, compare, repr, default

    _NONE = object()
    _PLAIN = _Field(None, True, True, _NONE)

    def field(*, default=_NONE, default_factory=None, compare=True, repr=True):
        return _Field(default_factory, compare, repr, default)

    def replace(value, /, **changes):
        given = {name: getattr(value, name) for name in type(value).__slots__ if name not in changes}
        return type(value)(**given, **changes)

    def asdict(value):
        if _is_ours(value):
            return {name: asdict(getattr(value, name)) for name in type(value).__slots__}
        if type(value) is dict:
            return {key: asdict(each) for key, each in value.items()}
        return type(value)(map(asdict, value)) if type(value) in (list, tuple) else value

    def astuple(value):
        return tuple([getattr(value, name) for name in type(value).__slots__])

    def _is_ours(value):
        return "__dataclass_fields__" in type(value).__dict__

    def dataclass(*, frozen=False, slots=False, eq=True):
        if not slots:
            raise TypeError("slots=True is required here; use dataclasses for a class without slots")
        return lambda cls: _data_class(cls, frozen, eq)

    def _data_class(cls, is_frozen, has_eq):
        given = dict(cls.__dict__)
        annotations = given.get("__annotations__", {})
        names = tuple(annotations)
        defaults = {name: given.pop(name) for name in names if name in given}
        options = {name: each for name, each in defaults.items() if isinstance(each, _Field)}

        def first_init(self, *args, **kwargs):
            init = made.__init__ = _compiled_init(made, names, defaults, is_frozen)
            init(self, *args, **kwargs)

        del given["__dict__"], given["__weakref__"]
        given |= {"__slots__": names, "__match_args__": names, "__init__": first_init}
        given["__dataclass_fields__"] = _StandardFields(annotations, defaults)
        given["__repr__"] = _repr_of([name for name in names if options.get(name, _PLAIN).repr])
        if has_eq:
            given |= _comparing([name for name in names if options.get(name, _PLAIN).compare], is_frozen)
        if is_frozen:
            given |= {"__setattr__": _refuse, "__delattr__": _refuse}
            given |= {"__getstate__": _state, "__setstate__": _set_state}
        made = type(cls)(cls.__name__, cls.__bases__, given)
        return made

    def _compiled_init(cls, names, defaults, is_frozen):
        known = {"_unset": _PLAIN}
        parameters, lines = [], []
        for name in names:
            value = name
            default = defaults.get(name, _NONE)
            if isinstance(default, _Field) and default.default_factory is not None:
                parameters.append(f"{name}=_unset")
                known[f"_make_{name}"] = default.default_factory
                value = f"_make_{name}() if {name} is _unset else {name}"
            else:
                plain = default.default if isinstance(default, _Field) else default
                parameters.append(name if plain is _NONE else f"{name}=_default_{name}")
                known[f"_default_{name}"] = plain
            # The slot's own setter: a frozen class refuses the usual one.
            known[f"_set_{name}"] = cls.__dict__[name].__set__
            lines.append(f" _set_{name}(self, {value})" if is_frozen else f" self.{name} = {value}")
        text = f"def __init__({', '.join(['self', *parameters])}):\n" + ("\n".join(lines) or " pass")
        # Made of names of fields, which are identifiers. It has this file's name: a traceback leads here, and a search
        # for code that comes out of recordings (tests/fuzz) knows that this does not.
        exec(compile(text, __file__, "exec"), known)
        init = known["__init__"]
        init.__qualname__ = f"{cls.__qualname__}.__init__"
        return init

    def _repr_of(shown):
        def __repr__(self):
            parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
            return f"{type(self).__qualname__}({parts})"

        return __repr__

    def _comparing(compared, is_frozen):
        def values(self):
            return tuple([getattr(self, name) for name in compared])

        def __eq__(self, other):
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        def __hash__(self):
            return hash(values(self))

        return {"__eq__": __eq__, "__hash__": __hash__ if is_frozen else None}

    def _refuse(self, name, value=None):
        from dataclasses import FrozenInstanceError  # only a mistake in our code gets here

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _state(self):
        return [getattr(self, name) for name in self.__slots__]

    def _set_state(self, state):
        for name, value in zip(self.__slots__, state, strict=True):
            object.__setattr__(self, name, value)

    class _StandardFields:
        """The fields in the form that `dataclasses` reads, made when one of its functions reads them."""

        def __init__(self, annotations, defaults):
            self.annotations, self.defaults = annotations, defaults

        def __get__(self, instance, owner):
            import dataclasses  # the caller has imported it

            def standard(name):
                if name not in self.defaults:
                    return dataclasses.field()
                default = self.defaults[name]
                if not isinstance(default, _Field):
                    return dataclasses.field(default=default)
                plain = dataclasses.MISSING if default.default is _NONE else default.default
                factory = default.default_factory or dataclasses.MISSING
                return dataclasses.field(
                    default=plain, default_factory=factory, compare=default.compare, repr=default.repr
                )

            fields = [(name, type_, standard(name)) for name, type_ in self.annotations.items()]
            # Only the fields are needed: no method is compiled, and no text made of the signature.
            made = dataclasses.make_dataclass(
                owner.__name__, fields, init=False, repr=False, eq=False, namespace={"__doc__": "fields"}
            )
            owner.__dataclass_fields__ = made.__dataclass_fields__  # `dataclasses.replace` reads them each time
            return made.__dataclass_fields__
