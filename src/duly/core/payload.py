"""Arguments and results as JSON: checked when they are written, so that no worker meets what it cannot read.

Owns the way from a call to bytes and back; knows neither stores nor who runs the handler.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

import msgspec

from duly.core.changes import changed
from duly.core.encoding import (
    ENCODER,
    MARKING_ENCODER,
    Bounds,
    decode_value,
    encode_value,
    explained,
    ordered,
    read,
    readable,
    refusal,
    too_large,
)
from duly.core.errors import PayloadError, UsageError
from duly.core.job import RESULT_MARK
from duly.core.secret import is_secret
from duly.core.signature import HandlerSignature, written
from duly.core.unstorable import Custom, is_row, surely_storable

__all__ = ["Arguments", "Bounds", "decode_result", "encode_result"]

_SCALARS: Final[frozenset[type]] = frozenset({str, int, bool, float, NoneType})
_BOUNDS: Final = Bounds()
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_UNKNOWN: Final = re.compile("Object contains unknown field `(.*)`")
_asdict: Final = msgspec.structs.asdict
_MISSING: Final = re.compile("Object missing required field `(.*)`")

CustomReader = Callable[[type, object], object]
"""From plain JSON to a Custom of the given class; ValueError for what is none."""


class _Shape(NamedTuple):
    """What is known of a handler's arguments once its annotations are read."""

    takes_job: bool
    names: tuple[str, ...]
    positional: int
    required: frozenset[str]
    types: dict[str, Any]
    exact: dict[str, frozenset[type]]
    """Types whose values need no proof that they come back unchanged."""
    open: frozenset[str]
    """Parameters of which some part has no declared type."""
    sets: frozenset[str]
    """Parameters of which some part is a set."""
    custom: frozenset[type]
    """Classes of the layers above among the parts."""
    optional: bool
    """Whether some parameter may be left out."""
    decode: Callable[[bytes | str], Any]
    """From JSON to an object with a field for each parameter."""


class Arguments:
    """A handler's arguments: a call becomes a JSON object {parameter: value}, and that object the call again.

    A first positional parameter annotated with `job_type` is the attempt's handle and never stored; anywhere else it
    is a UsageError at once. `*args`, `**kwargs` and positional-only parameters are refused: arguments are stored by
    name. Types are read at the first use. A parameter left to its default is not stored: the default counts that the
    handler has when it runs. Parameters without annotation take plain JSON values.

    An aware datetime arrives as the same instant with the same offset, no longer in its named zone.
    """

    def __init__(
        self, fn: Callable[..., object], *, job_type: type, custom: CustomReader | None = None
    ) -> None:
        self._signature = HandlerSignature.of(fn, job_type)
        self._hook = read if custom is None else partial(_read_any, custom)
        self._shape: _Shape | None = None

    @property
    def takes_job(self) -> bool:
        """Whether the handler's first parameter is the job."""
        return self._known().takes_job

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that are stored, in their order."""
        return self._known().names

    @property
    def required(self) -> frozenset[str]:
        """The parameters without a default."""
        return self._known().required

    @property
    def types(self) -> Mapping[str, Any]:
        """The annotation of each stored parameter, what `Annotated` adds included; Any without one."""
        return self._known().types

    def default_of(self, name: str) -> object:
        """A parameter's default, msgspec.UNSET where it has none."""
        default = self._signature.signature.parameters[name].default
        return msgspec.UNSET if default is inspect.Parameter.empty else default

    @property
    def custom(self) -> frozenset[type]:
        """The classes of the layers above that some parameter holds."""
        return self._known().custom

    def filled(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """The call's arguments by name, with the defaults of those left out; UsageError when it does not fit."""
        named = self._bound(self._shape or self._known(), args, kwargs)
        parameters = self._signature.signature.parameters
        return {name: named.get(name, parameters[name].default) for name in self.names}

    def encode(
        self, args: tuple[object, ...], kwargs: Mapping[str, object], bounds: Bounds = _BOUNDS
    ) -> bytes:
        """Return the call as JSON that the handler's types are proved to read back unchanged.

        Raises UsageError when the call does not fit the handler, PayloadError when a value cannot be stored.
        """
        shape = self._shape or self._known()
        named = self._bound(shape, args, kwargs)
        for name, value in named.items():
            if type(value) not in shape.exact[name]:
                return _proved(shape.decode, shape, named, bounds)
            if isinstance(value, (int, float)) and not _LEAST <= value <= _MOST:
                return _proved(shape.decode, shape, named, bounds)
        try:
            data = ENCODER.encode(named)
        except UnicodeEncodeError:
            return _proved(shape.decode, shape, named, bounds)
        if len(data) > bounds.max_bytes:
            raise too_large(len(data), named, bounds, "argument")
        return data

    def encode_marked(
        self, args: tuple[object, ...], kwargs: Mapping[str, object], bounds: Bounds = _BOUNDS
    ) -> bytes:
        """As `encode`, with RESULT_MARK wherever RESULT stands; such an argument is proved when its job runs."""
        shape = self._shape or self._known()
        named = self._bound(shape, args, kwargs)
        data = _written(shape, named, bounds, MARKING_ENCODER)
        if RESULT_MARK not in data:
            return self.encode(args, kwargs, bounds)
        known = {}
        for name, value in named.items():
            if RESULT_MARK not in MARKING_ENCODER.encode(value):
                known[name] = value
            elif fault := explained({name: value}, bounds, "argument"):
                raise refusal(fault, "argument")
        _proved(self._lenient.decode, shape, known, bounds)
        return data

    def decode(self, data: bytes | str) -> dict[str, Any]:
        """Return the stored arguments as the handler's types; raise PayloadError with the path of what does not fit."""
        shape = self._shape or self._known()
        try:
            found = shape.decode(data)
        except Exception:  # whatever it was is said by the second try, which is for errors alone
            return self._refused(shape, data)
        named = _asdict(found)
        if shape.optional:
            return {name: value for name, value in named.items() if value is not msgspec.UNSET}
        return named

    def _known(self) -> _Shape:
        if self._shape is None:
            self._shape = _read(self._signature, self._hook)
        return self._shape

    @cached_property
    def _lenient(self) -> msgspec.json.Decoder[Any]:
        """Reads calls of which some arguments are not known yet."""
        return _decoder(self._known().types, frozenset(), self._hook)

    def _refused(self, shape: _Shape, data: bytes | str) -> dict[str, Any]:
        try:
            found = decode_value(data, shape.decode, "argument")
        except PayloadError as error:
            raise self._of_another_release(error) from error.__cause__
        return {name: value for name, value in _asdict(found).items() if value is not msgspec.UNSET}

    def _of_another_release(self, error: PayloadError) -> PayloadError:
        """The error itself, or a clearer one where a release that takes other parameters stored the arguments."""
        cause, handler = str(error.__cause__), self._signature.name
        takes = ", ".join(self.names) or "nothing"
        if found := _UNKNOWN.fullmatch(cause):
            name = found.group(1)
            return PayloadError(
                f"argument '{name}' is not among what {handler}() takes ({takes}): another release enqueued this job; "
                f"give {handler}() a parameter '{name}' with a default, or let a worker of that release run it, "
                "then redrive it",
                path=name,
            )
        if found := _MISSING.fullmatch(cause):
            name = found.group(1)
            return PayloadError(
                f"argument '{name}', which {handler}() requires, is not among those stored: another release enqueued "
                f"this job; give '{name}' a default, then redrive it",
                path=name,
            )
        return error

    def _bound(
        self, shape: _Shape, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> dict[str, object]:
        names = shape.names
        if not kwargs and len(args) == shape.positional == len(names):
            return dict(zip(names, args, strict=True))
        named: dict[str, object] = dict(zip(names, args, strict=False))
        fits = (
            len(args) <= shape.positional
            and named.keys().isdisjoint(kwargs)
            and shape.exact.keys() >= kwargs.keys()
        )
        if fits and kwargs:
            given = {**named, **kwargs}
            # In the handler's order, so that equal calls have equal bytes.
            named = {name: given[name] for name in names if name in given}
        if not fits or not named.keys() >= shape.required:
            return self._signature.fit(args, kwargs, shape.takes_job)
        return named


def _proved(
    decode: Callable[[bytes | str], Any], shape: _Shape, named: dict[str, object], bounds: Bounds
) -> bytes:
    data = _written(shape, named, bounds, ENCODER)
    try:
        found = decode_value(data, decode, "argument")
    except PayloadError:
        # JSON has null where there was NaN, for one: the value itself says more than what became of it.
        if fault := explained(named, bounds, "argument"):
            raise refusal(fault, "argument") from None
        raise
    for name, value in named.items():
        if fault := changed(value, getattr(found, name), strict=name in shape.open):
            raise refusal(fault.under(name), "argument")
    return data


def _written(shape: _Shape, named: dict[str, object], bounds: Bounds, encoder: msgspec.json.Encoder) -> bytes:
    data = encode_value(named, bounds, "argument", encoder)
    if shape.sets.isdisjoint(named):
        return data
    sorted_sets = {
        name: ordered(value, encoder) if name in shape.sets else value for name, value in named.items()
    }
    return encoder.encode(sorted_sets)


def _read_any(custom: CustomReader, kind: type, value: object) -> object:
    if is_secret(kind) or not issubclass(kind, Custom):
        return read(kind, value)
    return custom(kind, value)


def _decoder(
    types: Mapping[str, Any], required: frozenset[str], hook: CustomReader
) -> msgspec.json.Decoder[Any]:
    fields = [
        (name, kind) if name in required else (name, kind, msgspec.UNSET) for name, kind in types.items()
    ]
    # The class is made of the user's own annotations: msgspec checks a whole call in one pass over it.
    struct = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
    return msgspec.json.Decoder(struct, dec_hook=hook)


def _read(signature: HandlerSignature, hook: CustomReader) -> _Shape:
    taken = signature.read()
    parts = {name: _checked_parts(signature, name, kind) for name, kind in taken.types.items()}
    return _Shape(
        takes_job=taken.takes_job,
        names=tuple(taken.types),
        positional=taken.positional,
        required=taken.required,
        types=taken.types,
        exact={name: _exact(kind) for name, kind in taken.types.items()},
        open=frozenset(name for name, found in parts.items() if any(map(_is_open, found))),
        sets=frozenset(name for name, found in parts.items() if any(map(_is_set, found))),
        custom=frozenset(kind for found in parts.values() for part in found for kind in _custom_in(part)),
        optional=not taken.required.issuperset(taken.types),
        decode=_decoder(taken.types, taken.required, hook).decode,
    )


def _exact(kind: Any) -> frozenset[type]:
    if kind is Any or kind is object:
        return _SCALARS
    if get_origin(kind) is Annotated and not any(isinstance(note, msgspec.Meta) for note in get_args(kind)):
        kind = get_args(kind)[0]
    parts: tuple[Any, ...] = get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
    known: frozenset[type] = frozenset(part for part in parts if isinstance(part, type))
    return known if len(known) == len(parts) and known <= _SCALARS else frozenset()


def _checked_parts(signature: HandlerSignature, name: str, kind: Any) -> list[msgspec.inspect.Type]:
    """Every part of a parameter's type; UsageError where one has no form in JSON."""
    where = f"parameter '{name}' of {signature.name}()"
    try:
        msgspec.json.Decoder(kind, dec_hook=read)
        parts = list(_parts(msgspec.inspect.type_info(kind), set()))
    except Exception as error:  # msgspec evaluates the annotations of the user's own classes
        raise UsageError(
            f"{where} is annotated {written(kind)}, which cannot be read from JSON: {error}; narrow it"
        ) from error
    for part in parts:
        custom = isinstance(part, msgspec.inspect.CustomType)
        owner = getattr(part, "cls", None)
        if is_row(owner):
            raise UsageError(
                f"{where} is annotated with the database row {_called(owner)}; pass its id instead"
            )
        if custom and not (isinstance(owner, type) and readable(owner)):
            raise UsageError(
                f"{where} is annotated {_called(owner)}, which has no form in JSON; pass its id, or a dataclass with "
                "what the handler needs"
            )
    return parts


def _is_open(part: msgspec.inspect.Type) -> bool:
    return isinstance(part, msgspec.inspect.AnyType) or getattr(part, "cls", None) is object


def _custom_in(part: msgspec.inspect.Type) -> Iterator[type]:
    # Other classes are refused before: what msgspec does not know is one of ours or reads as plain JSON.
    if isinstance(part, msgspec.inspect.CustomType) and issubclass(part.cls, Custom):
        yield part.cls


def _is_set(part: msgspec.inspect.Type) -> bool:
    return isinstance(part, (msgspec.inspect.SetType, msgspec.inspect.FrozenSetType))


def _called(kind: object) -> str:
    return getattr(kind, "__name__", str(kind))


def _parts(node: object, seen: set[int]) -> Iterator[msgspec.inspect.Type]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, msgspec.inspect.Type):
        yield node
    inner = node if isinstance(node, tuple) else ()
    if isinstance(node, (msgspec.inspect.Type, msgspec.inspect.Field)):
        inner = tuple(getattr(node, name) for name in node.__struct_fields__)
    for part in inner:
        if isinstance(part, (tuple, msgspec.inspect.Type, msgspec.inspect.Field)):
            yield from _parts(part, seen)


def encode_result(value: object, bounds: Bounds = _BOUNDS) -> bytes:
    """Return what a handler returned as JSON; raise PayloadError with the path of what cannot be stored.

    Tuples, sets and keys that are no text become what JSON has; `decode_result` gives them their types back.
    """
    data = encode_value(value, bounds, "result")
    if not surely_storable(value) and (fault := explained(value, bounds, "result")):
        raise refusal(fault, "result")
    return data


def decode_result(data: bytes | str, kind: Any = Any) -> Any:
    """Return a stored result as `kind`, the handler's return annotation, or as plain JSON; PayloadError if unfit."""
    return decode_value(data, partial(msgspec.json.decode, type=kind, dec_hook=read), "result")
