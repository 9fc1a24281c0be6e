"""Tells whether two callables are the same function over the same values, as far as looking at them can tell.

Keeps nothing alive: values are remembered by what they hold, by a weak reference, or by their place in memory.
"""

from __future__ import annotations

import reprlib
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from inspect import unwrap
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

_PLAIN: Final = frozenset({str, bytes, int, float, bool, type(None)})
_CONTAINERS: Final = frozenset({list, dict, tuple, set, frozenset})
_DEEPEST: Final = 4
_LONG: Final = 200


class Likeness:
    """One callable as it was when it was called."""

    __slots__ = ("_code", "_name", "_values")

    def __init__(self, fn: Callable[..., Any]) -> None:
        inner = function_of(fn)
        self._code = getattr(inner, "__code__", inner if inner is not fn else type(fn))
        self._name = _name(inner)
        self._values = {name: _mark(value, _DEEPEST) for name, value in _held(fn)}

    @property
    def place(self) -> str:
        """Where it is written, for messages."""
        return _place(self._name, self._code)

    def same_code(self, other: Likeness) -> bool:
        """Written in the same place."""
        return self._code is other._code or self._code == other._code

    def differing(self, other: Likeness) -> list[str]:
        """Names of what it holds that is not what the other one, of the same code, holds."""
        mine, theirs = self._values, other._values
        return [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]


def place(fn: Callable[..., Any]) -> str:
    """A callable as messages name it: with the line it stands in, where it has one."""
    inner = function_of(fn)
    return _place(_name(inner), getattr(inner, "__code__", None))


def _name(inner: Any) -> str:
    name: str = getattr(inner, "__name__", type(inner).__name__)
    return name


def _place(name: str, code: Any) -> str:
    if not isinstance(code, CodeType):
        return name
    return f"{name} ({code.co_filename.rpartition('/')[2]}:{code.co_firstlineno})"


def function_of(fn: Any) -> Any:
    """What is behind partials, methods and decorators; a callable object is itself."""
    if type(fn) is FunctionType and "__wrapped__" not in fn.__dict__:
        # A lambda, as a rule, and asked for with each step.
        return fn
    while True:
        if isinstance(fn, partial):
            fn = fn.func
        elif isinstance(fn, MethodType):
            fn = fn.__func__
        else:
            break
    return unwrap(fn) if isinstance(fn, FunctionType) else fn


def _held(fn: Any) -> Iterator[tuple[str, object]]:
    """What a callable brings along: captured variables, defaults, a partial's arguments, a method's object."""
    if isinstance(fn, partial):
        yield from ((f"argument {index + 1}", value) for index, value in enumerate(fn.args))
        yield from fn.keywords.items()
        yield from _held(fn.func)
    elif isinstance(fn, MethodType):
        yield "self", fn.__self__
        yield from _held(fn.__func__)
    elif isinstance(fn, FunctionType):
        yield from _captured(fn)
    else:
        yield "self", fn


def _captured(fn: FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            # A variable that has no value yet.
            continue
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    defaults = fn.__defaults__ or ()
    yield from zip(names[len(names) - len(defaults) :], defaults, strict=True)
    keywords: Mapping[str, object] = fn.__kwdefaults__ or {}
    yield from keywords.items()


def _mark(value: Any, depth: int) -> object:
    """What is compared in place of a value. Equal marks of different values are rare; nothing is asked of the value."""
    kind = type(value)
    if kind in _PLAIN:
        long = isinstance(value, (str, bytes)) and len(value) > _LONG
        return (kind, hash(value) if long else value)
    if kind in _CONTAINERS:
        text = _shown.repr(value)
        return (kind, text, id(value)) if "..." in text else (kind, text)
    if isinstance(value, (FunctionType, MethodType, partial)) and depth:
        inner = function_of(value)
        return (
            kind,
            getattr(inner, "__code__", inner),
            tuple((name, _mark(held, depth - 1)) for name, held in _held(value)),
        )
    try:
        return _Known(value)
    except TypeError:
        return (kind, id(value))


class _Known:
    """An object, known again by being the same one."""

    __slots__ = ("_to",)

    def __init__(self, value: object) -> None:
        self._to = weakref.ref(value)

    def __eq__(self, other: object) -> bool:
        value = self._to()
        return isinstance(other, _Known) and value is not None and value is other._to()

    def __hash__(self) -> int:
        return 0


class _Shown(reprlib.Repr):
    """Containers as bounded text. Objects in them are shown by their place: their own text may cost anything."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = _DEEPEST
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 50
        self.maxstring = self.maxlong = _LONG

    def repr_instance(self, x: Any, level: int) -> str:
        return repr(x) if type(x) in _PLAIN else f"<{type(x).__name__} {id(x):x}>"


_shown: Final = _Shown()
