"""Which jobs a list or an act is about: the one filter of the command line, `inspect` and `operate`.

Matches anything with the fields of a job record, mappings included; knows no store and no query language of one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final, Literal

import msgspec

from duly.core.durations import parse_duration
from duly.core.errors import UsageError
from duly.core.lifecycle import State
from duly.core.names import Kind, check_name

Operator = Literal["=", "!=", "<", "<=", ">", ">="]

_OPERATORS: Final[dict[str, Operator]] = {"=": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_FOREIGN: Final = {"==": "=", "===": "=", "<>": "!=", "=<": "<=", "=>": ">="}
_LITERALS: Final = {"True": "true", "False": "false", "None": "null"}
_NAMED: Final[dict[str, Kind]] = {
    "queue": "queue",
    "task": "task",
    "tenant": "tenant",
    "tag": "tag",
    "correlation": "correlation id",
}
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{4,8}")
_WHOLE: Final = 8
_WHERE: Final = re.compile(
    r"\s*((?:\[\"[^\"]*\"\]|\[(?!\")|[^\s=!<>~\[])+)\s*([=!<>~]+)\s*(.*?)\s*", re.DOTALL
)
_STEP: Final = re.compile(r"\.([^.\[\]\"]+)|\[([0-9]{1,6})\]|\[\"([^\"]*)\"\]")
_EXAMPLE: Final = "write it like args.customer_id = 7"
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison with a decoded argument, as `--where` spells it."""

    path: tuple[str, ...]
    operator: Operator
    value: object

    def holds(self, arguments: object) -> bool:
        """Tell whether it is so. An argument that is absent, or of another kind than the value, never matches."""
        found = arguments
        for step in self.path:
            found = _step_into(found, step)
        if found is _ABSENT:
            return False
        if self.operator == "=":
            return _equal(found, self.value)
        if self.operator == "!=":
            return not _equal(found, self.value)
        return self._in_order(found)

    def _in_order(self, found: object) -> bool:
        order = _order(found, self.value)
        if order is None:
            return False
        if self.operator == "<":
            return order < 0
        if self.operator == "<=":
            return order <= 0
        return order > 0 if self.operator == ">" else order >= 0


def _step_into(owner: object, step: str) -> object:
    if isinstance(owner, Mapping):
        return owner.get(step, _ABSENT)
    if isinstance(owner, Sequence) and not isinstance(owner, (str, bytes)) and step.isdecimal():
        return owner[int(step)] if int(step) < len(owner) else _ABSENT
    return _ABSENT


def _equal(left: object, right: object) -> bool:
    # JSON's true is not its 1, as Python would have it.
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _order(left: object, right: object) -> int | None:
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    if isinstance(left, bool) or isinstance(right, bool):
        return None
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return (left > right) - (left < right)
    return None


@lru_cache(maxsize=128)
def parse_where(text: str) -> Condition:
    """Read `args.customer_id = 7`: a dotted path, one of = != < <= > >=, and a JSON value or bare text.

    Lists are entered by position (`args.lines[0].sku`), odd keys in quotes (`args.prices["a b"]`). Text that looks
    like a number or word of JSON is one; quote it to mean text. Raises UsageError with the fix.
    """
    found = _WHERE.fullmatch(text)
    if found is None:
        raise UsageError(f"--where {text!r:.80} is no comparison; {_EXAMPLE}")
    path, sign, literal = found.groups()
    if sign in _FOREIGN:
        raise UsageError(f"--where {text!r:.80}: write {_FOREIGN[sign]} instead of {sign}")
    if sign not in _OPERATORS:
        raise UsageError(f"--where {text!r:.80}: {sign} is no comparison; use one of {' '.join(_OPERATORS)}")
    return Condition(_parse_path(path, text), _OPERATORS[sign], _parse_literal(literal, text))


def _parse_path(path: str, text: str) -> tuple[str, ...]:
    if not path.startswith(("args.", "args[")):
        raise UsageError(f"--where {text!r:.80} looks at arguments only; write args.{path.lstrip('.')}")
    steps: list[str] = []
    position = len("args")
    while step := _STEP.match(path, position):
        steps.append(next(part for part in step.groups() if part is not None))
        position = step.end()
    if position != len(path):
        raise UsageError(
            f"--where {text!r:.80}: {path!r:.60} is no path; {_EXAMPLE} or args.lines[0].sku = abc"
        )
    return tuple(steps)


def _parse_literal(literal: str, text: str) -> object:
    if not literal:
        raise UsageError(f"--where {text!r:.80} compares with nothing; {_EXAMPLE}")
    if literal in _LITERALS:
        raise UsageError(
            f"--where {text!r:.80}: values are JSON; write {_LITERALS[literal]}, or quote it to mean text"
        )
    if literal[0] == literal[-1] == "'" and len(literal) > 1:
        return literal[1:-1]
    try:
        value: object = msgspec.json.decode(literal.encode("utf-8", "surrogatepass"))
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        if literal[0] in "\"'[{":
            raise UsageError(
                f"--where {text!r:.80}: {literal!r:.40} is no whole JSON value; close it"
            ) from None
        return literal
    return value


class Filter(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which jobs are meant: all that fit every part given; with no part at all, every job.

    Stored with an operation as JSON (`to_json`, `from_json`), so that it means the same when the operation goes on.
    """

    queue: str | None = None
    task: str | None = None
    tenant: str | None = None
    state: State | None = None
    tag: str | None = None
    correlation: str | None = None
    fingerprint: str | None = None
    """The first 4 to 8 digits of an error's fingerprint."""
    since: datetime | None = None
    """Enqueued then or later."""
    until: datetime | None = None
    """Enqueued before then."""
    where: str | None = None
    """A comparison with an argument, as `parse_where` reads it."""

    def __post_init__(self) -> None:
        for field, kind in _NAMED.items():
            value = getattr(self, field)
            if value is not None:
                check_name(kind, value)
        if self.fingerprint is not None and not _FINGERPRINT.fullmatch(self.fingerprint):
            raise UsageError(
                f"fingerprint {self.fingerprint!r:.40} must be 4 to 8 digits of 0-9 a-f, such as 'a91f03c2'"
            )
        for field, moment in (("since", self.since), ("until", self.until)):
            if moment is not None and moment.tzinfo is None:
                raise UsageError(f"{field} has no time zone; write datetime(..., tzinfo=UTC)")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise UsageError("since lies after until, so that no job can match; swap them")
        if self.where is not None:
            parse_where(self.where)

    @property
    def names_one_error(self) -> bool:
        """Whether the fingerprint is given whole: the beginning of one may stand for several errors."""
        return self.fingerprint is not None and len(self.fingerprint) == _WHOLE

    @property
    def everything(self) -> bool:
        """Whether no part is given, so that every job fits."""
        return not self.parts()

    def parts(self) -> dict[str, str]:
        """Return the parts given, as text and in the order of the command line's flags."""
        given: dict[str, str] = {}
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if value is not None:
                given[field] = value.isoformat() if isinstance(value, datetime) else str(value)
        return given

    def __str__(self) -> str:
        return " ".join(f"{field}={value}" for field, value in self.parts().items()) or "all jobs"

    def matches(self, record: object) -> bool:
        """Tell whether a job fits: a record, or a mapping, with the fields of a JobRecord (absent ones are None)."""
        return (
            self._names_match(record)
            and (self.fingerprint is None or _fingerprint(record).startswith(self.fingerprint))
            and self._within(_field(record, "enqueued_at"))
            and (self.where is None or parse_where(self.where).holds(_arguments(record)))
        )

    def _names_match(self, record: object) -> bool:
        wanted = (
            ("queue", self.queue),
            ("task", self.task),
            ("tenant", self.tenant),
            ("state", self.state),
            ("correlation_id", self.correlation),
        )
        if any(value is not None and _field(record, field) != value for field, value in wanted):
            return False
        tags = _field(record, "tags")
        return self.tag is None or (isinstance(tags, (list, tuple, set, frozenset)) and self.tag in tags)

    def _within(self, moment: object) -> bool:
        if self.since is None and self.until is None:
            return True
        if not isinstance(moment, datetime):
            return False
        return (self.since is None or moment >= self.since) and (self.until is None or moment < self.until)

    def to_json(self) -> bytes:
        """Return the filter as a JSON object of the parts given."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes | str) -> "Filter":
        """Read what `to_json` wrote. Raises UsageError for anything else, with the reason."""
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise UsageError(f"this is no stored filter: {error}") from error


def _field(record: object, name: str) -> object:
    return record.get(name) if isinstance(record, Mapping) else getattr(record, name, None)


def _fingerprint(record: object) -> str:
    own = _field(record, "fingerprint")
    if own is None:
        own = _field(_field(record, "error"), "fingerprint")
    return own if isinstance(own, str) else ""


def _arguments(record: object) -> object:
    stored = _field(record, "args")
    if not isinstance(stored, (bytes, str)):
        return stored
    try:
        arguments: object = msgspec.json.decode(stored)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None  # kept byte for byte, readable by nobody: no condition on it can hold
    return arguments


def parse_moment(text: str, now: datetime, what: str = "since") -> datetime:
    """Read a moment of `--since` or `--until`: "2h" (that long before `now`) or ISO 8601 with its offset."""
    stripped = text.strip()
    try:
        moment = datetime.fromisoformat(stripped)
    except ValueError:
        return now - parse_duration(stripped, what)
    if moment.tzinfo is None:
        raise UsageError(
            f"{what} {text!r:.60} has no time zone; write {moment.isoformat()}Z, or a span such as 2h"
        )
    return moment
