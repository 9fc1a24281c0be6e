"""A value that is not shown: its type, its form in stored JSON, and text without it. Knows no store.

The texts of all that live in this process are known here, so that whoever writes words for people leaves them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hmac import compare_digest
from itertools import count
from typing import Any, Final, Generic, NoReturn, TypeVar, get_args, get_origin

import msgspec

from duly.core.unstorable import Custom

T = TypeVar("T")

HIDDEN: Final = "***"
MARK: Final = "$secret"
"""The one member of the object that stands for a secret in stored JSON."""
_MARKED: Final = b'"$secret"'
# Shorter ones would be found in innocent text.
_SHORTEST: Final = 4
_live: Final[dict[int, tuple[str, ...]]] = {}
_numbers: Final = count()


class Secret(Custom, Generic[T]):
    """A password, a token, an account number: `Secret[str]` as the annotation, `Secret("…")` as the argument.

    Its repr, str and format are "***", and it cannot be pickled. `reveal()` gives the value; as long as the secret
    lives, errors, logs and reasons that duly writes have "***" in its place. It is stored as it is: encrypt the task to
    keep it from those who read the database.
    """

    def __init__(self, value: T) -> None:
        self._value: T = value.reveal() if isinstance(value, Secret) else value
        self._number = next(_numbers)
        texts = tuple(dict.fromkeys(text for text in _texts(self._value) if len(text) >= _SHORTEST))
        if texts:
            # One assignment, and one tuple() below: neither is torn by another thread.
            _live[self._number] = texts

    def reveal(self) -> T:
        """The value itself."""
        return self._value

    def to_json(self) -> object:
        """Marked, so that whoever shows stored arguments can tell."""
        return {MARK: self._value}

    def __repr__(self) -> str:
        return f"Secret({HIDDEN!r})"

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        ours, theirs = self._value, other._value
        if isinstance(ours, str) and isinstance(theirs, str):
            return compare_digest(
                ours.encode("utf-8", "surrogatepass"), theirs.encode("utf-8", "surrogatepass")
            )
        return bool(ours == theirs)

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __copy__(self) -> Secret[T]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret[T]:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Secret cannot be pickled: whoever reads the pickle would see it; pass reveal() if that is meant"
        )

    def __del__(self) -> None:
        _live.pop(getattr(self, "_number", -1), None)


def is_secret(kind: object) -> bool:
    """Whether an annotation is Secret or Secret[…] itself."""
    return kind is Secret or get_origin(kind) is Secret


def read_secret(kind: object, value: object) -> Secret[Any]:
    """From plain JSON, marked or not; ValueError where the value does not fit what is in the brackets."""
    inner = value[MARK] if isinstance(value, dict) and value.keys() == {MARK} else value
    wanted = get_args(kind)
    try:
        return Secret(msgspec.convert(inner, wanted[0]) if wanted else inner)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def masked(text: str) -> str:
    """The text without what is secret in this process."""
    if not _live:
        return text
    for known in tuple(_live.values()):
        for secret in known:
            if secret in text:
                text = text.replace(secret, HIDDEN)
    return text


def without_secrets(data: bytes) -> bytes:
    """Stored JSON with "***" for each secret in it; anything else byte for byte as it was."""
    if _MARKED not in data:
        return data
    try:
        return msgspec.json.encode(_replaced(msgspec.json.decode(data), hide=True))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # Not to be read by anybody then: better nothing than a secret.
        return b'"***"'


def unmarked(data: bytes) -> bytes:
    """Stored JSON with each secret as the plain value that it is: for whoever runs the job without this library."""
    if _MARKED not in data:
        return data
    try:
        return msgspec.json.encode(_replaced(msgspec.json.decode(data), hide=False))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return data


def _replaced(value: object, *, hide: bool) -> object:
    if isinstance(value, dict):
        if value.keys() == {MARK}:
            return HIDDEN if hide else value[MARK]
        return {key: _replaced(part, hide=hide) for key, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, hide=hide) for part in value]
    return value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, (int, float)):
        yield str(value)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from _texts(part)


_LIKE: Final = re.compile(
    r"(?:^|_)(?:passwords?|passwd|passphrase|pwd|secrets?|tokens?|api_?keys?|access_?keys?|private_?keys?|authorization|"
    r"credentials?|iban|cards?|card_?(?:number|no)|credit_?card|cvv|cvc|ssn)$",
    re.IGNORECASE,
)


def sounds_secret(name: str) -> bool:
    """Whether a parameter's or a field's name is what people call secrets."""
    return (
        _LIKE.search(name) is not None
        or _LIKE.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)) is not None
    )
