"""A filter as one line of text, "queue=mail state=dead args.order_id = 7": read, written, and completed.

The language of `core.filters` for places with one field to type into. Pure; what names there are is passed in.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from duly.core.errors import UsageError
from duly.core.filters import Filter, parse_moment, parse_where
from duly.core.lifecycle import State

FIELDS: Final[dict[str, str]] = {
    "state": "where it stands",
    "queue": "which queue",
    "task": "which task",
    "tenant": "whose work",
    "tag": "one of its tags",
    "correlation": "the request it belongs to",
    "fingerprint": "which error, its first 4 to 8 digits",
    "since": "enqueued then or later: 2h, or 2030-05-01T09:00Z",
    "until": "enqueued before then",
}
ARGUMENT: Final = "args."
LONGEST: Final = 2_000
"""Characters of a filter."""
_MOST: Final = 12

_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_PLAIN: Final = re.compile(r"[^\s\"'=]+")
_PART: Final = re.compile(
    r"\s*(?:"
    r"(?P<where>args(?:\.[^\s.=!<>~\[\]]+|\[\"[^\"]*\"\]|\[\d+\])*\s*[=!<>~]+\s*(?:'[^']*'|(?:"
    + _QUOTED
    + r"|[^\s\"])+|\S+)?)"
    r"|(?P<name>[A-Za-z_]+)\s*[:=]\s*(?P<value>" + _QUOTED + r"|\S*)"
    r"|(?P<bare>\S+))",
    re.DOTALL,
)
_LAST: Final = re.compile(r"(?:" + _QUOTED + r"|[^\s\"]|\"(?=[^\"]*$)[^\"]*)*$", re.DOTALL)
_TYPED: Final = re.compile(r"([A-Za-z_]+)[:=](.*)", re.DOTALL)


class Option(NamedTuple):
    """One way to go on."""

    text: str
    """All of the text, gone on."""
    shown: str
    note: str = ""


def read_filter(text: str, now: datetime) -> Filter:
    """Read a filter; "" is every job. Spans are counted from `now`. UsageError names the part that does not fit."""
    if len(text) > LONGEST:
        raise UsageError(f"a filter has at most {LONGEST:,} characters")
    given: dict[str, object] = {}
    for name, value in _parts(text):
        if name in given:
            raise UsageError(f"{name} is there twice; a job has one, so that nothing would fit both")
        given[name] = _read(name, value, now)
    return msgspec.convert(given, Filter)


def write_filter(filter: Filter) -> str:
    """Write a filter so that `read_filter` reads exactly the same."""
    return " ".join(
        _comparison(value) if name == "where" else f"{name}={_quoted(value)}"
        for name, value in filter.parts().items()
    )


def complete(text: str, known: Mapping[str, Sequence[str]]) -> list[Option]:
    """Ways to go on from a text that is being written; `known` has the names there are, by field."""
    if len(text) > LONGEST:
        return []
    last = _LAST.search(text)
    word = last.group() if last is not None else ""
    head = text[: len(text) - len(word)]
    typed = _TYPED.fullmatch(word)
    if typed is not None and typed[1] in FIELDS:
        return _values(head, typed[1], typed[2].strip('"'), known)
    used = {found["name"] for found in _PART.finditer(head) if found["name"]}
    offered = [
        Option(f"{head}{name}=", f"{name}=", note)
        for name, note in FIELDS.items()
        if name.startswith(word) and name not in used
    ]
    if ARGUMENT.startswith(word) and ARGUMENT not in head:
        offered.append(Option(head + ARGUMENT, ARGUMENT, "an argument, as args.order_id = 7"))
    offered += [
        Option(f"{head}state={state} ", f"state={state}", "")
        for state in State
        if word and state.startswith(word) and "state" not in used
    ]
    return offered[:_MOST]


def _values(head: str, field: str, begun: str, known: Mapping[str, Sequence[str]]) -> list[Option]:
    names: Sequence[str] = list(State) if field == "state" else known.get(field, ())
    if field in {"since", "until"}:
        names = ("15m", "1h", "6h", "1d", "7d")
    low = begun.lower()
    first = [name for name in names if name.lower().startswith(low)]
    rest = [name for name in names if low in name.lower() and not name.lower().startswith(low)]
    return [Option(f"{head}{field}={_quoted(name)} ", f"{field}={name}") for name in [*first, *rest][:_MOST]]


def _parts(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while text[position:].strip():
        found = _PART.match(text, position)
        if found is None:
            return
        position = found.end()
        if found["where"] is not None:
            yield "where", found["where"].strip()
        elif found["name"] is not None:
            yield _field(found["name"]), _unquoted(found["value"])
        else:
            yield _bare(found["bare"])


def _field(name: str) -> str:
    low = name.lower()
    if low in FIELDS:
        return low
    close = difflib.get_close_matches(low, FIELDS, n=1, cutoff=0.6)
    hint = (
        f"did you mean {close[0]}=?" if close else f"write one of {', '.join(FIELDS)}, or args.NAME = VALUE"
    )
    raise UsageError(f"{name[:40]!r} is nothing to filter by; {hint}")


def _bare(word: str) -> tuple[str, str]:
    if word.lower() in set(State):
        return "state", word.lower()
    raise UsageError(
        f"{word[:40]!r} stands alone; write what it is, as queue={word[:40]} or task={word[:40]}"
    )


def _read(name: str, value: str, now: datetime) -> object:
    if not value:
        raise UsageError(f"{name}= has no value; give it one, or leave it out")
    if name in {"since", "until"}:
        return parse_moment(value, now, name)
    if name == "state":
        low = value.lower()
        if low not in set(State):
            close = difflib.get_close_matches(low, list(State), n=1, cutoff=0.5)
            hint = f"did you mean {close[0]}?" if close else f"states are {', '.join(State)}"
            raise UsageError(f"{value[:40]!r} is no state; {hint}")
        return State(low)
    return value


def _comparison(where: str) -> str:
    """A comparison whose value is one word, or quoted, as flags of a command line need not have it."""
    found = _PART.fullmatch(where)
    if found is not None and found["where"] is not None:
        return where.strip()
    meant = parse_where(where)
    path = "".join(f"[{step}]" if step.isdecimal() else f'["{step}"]' for step in meant.path)
    return f"args{path} {meant.operator} {msgspec.json.encode(meant.value).decode()}"


def _quoted(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL)
    return value
