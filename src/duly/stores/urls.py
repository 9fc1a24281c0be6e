"""Database URLs as people write them: which kind of store, for SQLite which file, for memory which bound.

Opens nothing.
"""

from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol, runtime_checkable
from urllib.parse import parse_qsl, unquote, urlsplit

from duly.core.errors import UsageError

Kind = Literal["sqlite", "postgres", "memory"]

_ACCEPTED: Final = (
    "write sqlite:///relative.db, sqlite:////absolute/path.db, postgresql://user:password@host:5432/database, or "
    "memory:// for jobs that may end with the process"
)
_MEMORY: Final = "write memory://, or memory://?max=1000 so that enqueue waits while 1,000 jobs wait"

_HIDDEN: Final = "***"


@runtime_checkable
class _RendersAsString(Protocol):
    """SQLAlchemy's URL object."""

    def render_as_string(self, hide_password: bool = True) -> str: ...


class Address(NamedTuple):
    """Where a URL leads. `url` is for the driver and may hold a password; `shown` never does."""

    kind: Kind
    url: str
    shown: str
    path: Path | None = None
    """Absolute; of SQLite only."""
    most: int | None = None
    """How many jobs may wait; of memory only."""


def parse_url(url: object) -> Address:
    """Read a URL, or a SQLAlchemy URL object; UsageError with what to write instead."""
    text = _text_of(url)
    scheme, separator, rest = text.partition("://")
    dialect = scheme.partition("+")[0].lower()
    if not separator or dialect not in {"sqlite", "postgresql", "postgres", "memory"}:
        raise UsageError(f"the database URL {shown(text)!r} is not understood; {_ACCEPTED}")
    if dialect == "memory":
        return _memory(text, rest)
    if dialect == "sqlite":
        path = _path(text, rest)
        return Address("sqlite", f"sqlite:///{path}", f"sqlite:///{path}", path)
    plain = f"postgresql://{rest}"
    _check_password(plain)
    return Address("postgres", plain, shown(plain))


def shown(url: str) -> str:
    """The URL without its password."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    if "@" not in authority:
        return url
    login, _, host = authority.rpartition("@")
    name, colon, _password = login.partition(":")
    hidden = f"{name}:***" if colon else name
    return f"{scheme}{separator}{hidden}@{host}{slash}{path}"


def _text_of(url: object) -> str:
    if isinstance(url, str):
        return url.strip()
    if isinstance(url, _RendersAsString):
        return url.render_as_string(hide_password=False)
    raise UsageError(f"the database URL is a {type(url).__name__}, not text; {_ACCEPTED}")


def _path(url: str, rest: str) -> Path:
    authority, _, name = rest.partition("/")
    if authority:
        raise UsageError(
            f"{url!r} has {authority!r} where a host would stand; a file needs three slashes: sqlite:///{authority}"
            f"{'/' + name if name else ''}"
        )
    path, _, query = name.partition("?")
    if query:
        raise UsageError(f"{url!r} has parameters, and SQLite takes none here; write sqlite:///{path}")
    if not path or path == ":memory:":
        raise UsageError(
            f"{url!r} names no file; write sqlite:///duly.db, or memory:// for jobs that may end with the process"
        )
    # Like SQLAlchemy: three slashes are relative to the working directory, four absolute.
    return Path(unquote(path)).absolute()


def _memory(url: str, rest: str) -> Address:
    place, _, query = rest.partition("?")
    if place.strip("/"):
        raise UsageError(f"{url!r} names a place, and memory is this process's own; {_MEMORY}")
    if not query:
        return Address("memory", "memory://", "memory://")
    said = parse_qsl(query, keep_blank_values=True)
    if len(said) != 1 or said[0][0] != "max":
        raise UsageError(f"{url!r} has parameters other than max; {_MEMORY}")
    number = said[0][1]
    if not number.isdecimal() or not 1 <= int(number) < 2**31:
        raise UsageError(f"{url!r}: max={number!r} is no whole number from 1; {_MEMORY}")
    bounded = f"memory://?max={int(number)}"
    return Address("memory", bounded, bounded, most=int(number))


def _check_password(url: str) -> None:
    try:
        password = urlsplit(url).password
    except ValueError as error:
        raise UsageError(f"the database URL {shown(url)!r} cannot be read: {error}; {_ACCEPTED}") from error
    if password == _HIDDEN:
        raise UsageError(
            "the password of the database URL is '***': it was printed from a SQLAlchemy URL, which hides it. Pass the "
            "URL object itself, or url.render_as_string(hide_password=False)"
        )
