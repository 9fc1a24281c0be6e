"""Values to JSON and back, bounded in size and depth; the classes JSON lacks are written as text.

Knows neither handlers nor stores. JSON is written by msgspec: integers of any size survive, NaN never passes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final, Literal

import msgspec

from duly.core.defaults import MAX_NESTING, MAX_PAYLOAD
from duly.core.durations import format_size
from duly.core.errors import PayloadError, UsageError
from duly.core.job import RESULT_MARK
from duly.core.placeholder import Placeholder
from duly.core.secret import is_secret, read_secret
from duly.core.unstorable import Custom, Fault, advice, fault_in, is_pydantic, key_step

Subject = Literal["argument", "result"]
PLAIN: Final = (str, int, float)

_TEXTS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEPS: Final = re.compile(r"\.[^.\[]+|\[\.\.\.\]|\[[0-9]+\]")
_COMPLAINT: Final = re.compile(r"(.*?)(?: - at (`key` in )?`\$(.*)`)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large a payload may be: bytes of JSON, and levels of lists and objects inside one value."""

    max_bytes: int = MAX_PAYLOAD
    max_nesting: int = MAX_NESTING


def _write(value: object) -> object:
    if isinstance(value, Placeholder):
        raise UsageError(
            "RESULT stands for the result of the job before: write it in a draft of then=[…] and nowhere else"
        )
    return _written(value)


def _write_marks(value: object) -> object:
    return msgspec.Raw(RESULT_MARK) if isinstance(value, Placeholder) else _written(value)


def _written(value: object) -> object:
    if isinstance(value, Custom):
        return value.to_json()
    if isinstance(value, PurePath):
        return str(value)
    if is_pydantic(type(value)):
        dump: Callable[..., object] = getattr(value, "model_dump")  # noqa: B009  pydantic is known by its shape alone
        return dump(mode="json", by_alias=True, round_trip=True)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    raise TypeError(advice(value))


def read(kind: type, value: object) -> object:
    """Turn plain JSON into a class that msgspec does not know (its `dec_hook`)."""
    if kind is object:
        return value
    if is_secret(kind):
        return read_secret(kind, value)
    if is_pydantic(kind):
        return _validated(kind, msgspec.json.encode(value))
    if issubclass(kind, PurePath) and isinstance(value, str):
        return kind(value)
    for plain in PLAIN:
        if issubclass(kind, plain) and isinstance(value, plain):
            return kind(value)
    raise ValueError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")


def _validated(kind: type, data: bytes) -> object:
    validate: Callable[[bytes], object] = getattr(kind, "model_validate_json")  # noqa: B009  as above
    try:
        return validate(data)
    except ValueError as error:
        complaints: Callable[[], list[dict[str, Any]]] | None = getattr(error, "errors", None)
        if complaints is None or not (found := complaints()):
            raise
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in found[0]["loc"])
        raise ValueError(
            f"{place.removeprefix('.')}: {found[0]['msg']}" if place else found[0]["msg"]
        ) from error


def readable(kind: type) -> bool:
    """Tell whether `read` or a reader of the layers above knows a class."""
    return kind is object or is_pydantic(kind) or issubclass(kind, (PurePath, Custom, *PLAIN))


ENCODER: Final = msgspec.json.Encoder(enc_hook=_write)
MARKING_ENCODER: Final = msgspec.json.Encoder(enc_hook=_write_marks)
"""Writes RESULT_MARK for RESULT; what it makes of such a value is no JSON until a store puts the result in."""


def encode_value(
    value: object, bounds: Bounds, subject: Subject, encoder: msgspec.json.Encoder = ENCODER
) -> bytes:
    """Write a value as JSON within its bounds; raise PayloadError with the path of what does not fit.

    UsageError for RESULT where the encoder knows none, and for a value that cannot be stored here.
    """
    wrapped = 1 if subject == "argument" else 0  # the object {parameter: value} around the arguments
    try:
        data = encoder.encode(value)
    except UsageError:
        raise
    except Exception as error:  # what a user's own classes raise while they are read
        fault = explained(value, bounds, subject)
        raise refusal(fault or Fault(f"cannot be written as JSON: {error}"), subject) from error
    if len(data) > bounds.max_bytes:
        raise too_large(len(data), value, bounds, subject)
    if too_deep(data, bounds.max_nesting + wrapped):
        fault = explained(value, bounds, subject)
        raise refusal(fault or Fault(f"is nested more than {bounds.max_nesting} deep"), subject)
    return data


def ordered(value: object, encoder: msgspec.json.Encoder) -> object:
    """The value with its sets as sorted lists: equal calls of two processes, which hash differently, are equal bytes.

    Sets inside of a user's own classes keep the order they have.
    """
    if isinstance(value, (set, frozenset)):
        return [
            msgspec.Raw(part) for part in sorted(encoder.encode(ordered(part, encoder)) for part in value)
        ]
    if isinstance(value, (list, tuple)):
        return [ordered(part, encoder) for part in value]
    if isinstance(value, dict):
        return {key: ordered(part, encoder) for key, part in value.items()}
    return value


def explained(value: object, bounds: Bounds, subject: Subject) -> Fault | None:
    """Return why a value cannot be stored, or None where looking at it tells nothing."""
    try:
        if subject == "result" or not isinstance(value, dict):
            return fault_in(value, bounds.max_nesting)
        faults = ((name, fault_in(part, bounds.max_nesting)) for name, part in value.items())
        return next((fault.under(name) for name, fault in faults if fault), None)
    except Exception:  # a proxy or a property that raises while it is looked at
        return None


def refusal(fault: Fault, subject: Subject) -> PayloadError:
    """Return the error that names the place and the reason."""
    path = fault.path()
    if subject == "argument":
        path = path.removeprefix(".")
        about = f"argument '{_short(path)}'" if path else "the payload"
        return PayloadError(f"{about} {fault.reason}", path=path)
    where = f"'result{_short(path)}'" if path else "the result"
    return PayloadError(f"{where} {fault.reason}", path=f"result{path}")


def _short(path: str) -> str:
    return path if len(path) <= 120 else f"{path[:60]}…{path[-40:]}"


def too_large(size: int, value: object, bounds: Bounds, subject: Subject) -> PayloadError:
    """Return the error for a payload of `size` bytes, naming the largest of several arguments."""
    limit = format_size(bounds.max_bytes)
    if subject == "result":
        return PayloadError(
            f"the result takes {format_size(size)}, at most {limit} are kept; write it to a file or a table and "
            "return its path or id",
            path="result",
        )
    sizes = (
        {name: len(MARKING_ENCODER.encode(part)) for name, part in value.items()}
        if isinstance(value, dict)
        else {}
    )
    largest = max(sizes, key=lambda name: sizes[name], default="")
    return PayloadError(
        f"the arguments take {format_size(size)}, most of it '{largest}' ({format_size(sizes.get(largest, size))}); "
        f"at most {limit} are stored: pass a path or Blob.of(path), or an id, and read it in the handler",
        path=largest,
    )


def too_deep(data: bytes, most: int) -> bool:
    """Tell whether JSON is nested more than `most` levels deep."""
    if data.count(b"[") + data.count(b"{") <= most:
        return False
    # Each pass takes away exactly the innermost level of brackets, however many stand side by side.
    brackets = _TEXTS.sub(b"", data).translate(_BRACKETS, delete=_NO_BRACKETS)
    for _ in range(most):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def decode_value(data: bytes | str, decode: Callable[[bytes | str], Any], subject: Subject) -> Any:
    """Read JSON with a typed decoder; raise PayloadError with the path of what does not fit its type."""
    try:
        return decode(data)
    except RecursionError:
        raise refusal(Fault("is nested too deep to be read"), subject) from None
    except msgspec.ValidationError as error:
        raise _misfit(data, decode, error, subject) from error
    except Exception as error:  # broken JSON or UTF-8, or what a user's own class raises on its way in
        raise refusal(Fault(f"cannot be read: {type(error).__name__}: {error}"), subject) from error


def _misfit(
    data: bytes | str, decode: Callable[[bytes | str], Any], error: msgspec.ValidationError, subject: Subject
) -> PayloadError:
    found = _COMPLAINT.fullmatch(str(error))
    complaint, key, path = found.groups() if found else (str(error), None, None)
    path = _pinpoint(data, decode, str(error), path or "")
    about = "has a key that does not fit" if key else "does not fit"
    measure = "its annotation" if path or subject == "result" else "the handler"
    return refusal(Fault(f"{about} {measure}: {complaint[:1].lower()}{complaint[1:]}", [path]), subject)


def _pinpoint(data: bytes | str, decode: Callable[[bytes | str], Any], complaint: str, path: str) -> str:
    """Replace each "[...]" of msgspec's path, which stands for some key of a mapping, by the key meant.

    The mapping is reduced to one entry after the other until the same complaint is heard again.
    """
    if "[...]" not in path:
        return path
    document = node = msgspec.json.decode(data)
    steps: list[str] = []
    for step in _STEPS.findall(path):
        if step != "[...]" or not isinstance(node, dict):
            steps.append(step)
            node = _enter(node, step)
            continue
        for key, part in list(node.items())[:100]:
            rest = dict(node)
            node.clear()
            node[key] = part
            if _complaint(decode, msgspec.json.encode(document)) == complaint:
                steps.append(key_step(key))
                node = part
                break
            node.update(rest)
        else:
            return path
    return "".join(steps)


def _enter(node: Any, step: str) -> Any:
    if isinstance(node, dict):
        return node.get(step.removeprefix("."))
    return node[int(step[1:-1])] if isinstance(node, list) and step[1:-1].isdecimal() else None


def _complaint(decode: Callable[[bytes | str], Any], data: bytes) -> str | None:
    try:
        decode(data)
    except Exception as error:  # with other entries missing, a user's own class may complain of that
        return str(error)
    return None
