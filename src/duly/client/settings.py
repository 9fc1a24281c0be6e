"""Where and how: every setting with its value and its origin, by one order of sources.

flag, code, environment, `[tool.duly]` of pyproject.toml, default. Read at first use, never at import.
Knows neither a store nor a worker; what a value means is theirs.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from duly.client.setting_types import (
    Hidden,
    choice,
    count,
    duration,
    folder_url,
    name_list,
    optional_count,
    optional_size,
    optional_switch,
    processes,
    secret_list,
    size,
    span,
    switch,
    text,
    url,
    url_list,
)
from duly.core import defaults
from duly.core.budget import Budget
from duly.core.durations import compact_duration
from duly.core.errors import UsageError
from duly.core.payload import Bounds
from duly.core.plan import Processes
from duly.stores.urls import parse_url, shown

Kind = Literal["flag", "code", "environment", "pyproject.toml", "default"]

PREFIX: Final = "DULY_"
FROM_FILES: Final = ("url", "secret", "keys", "alerts")
"""Settings whose value may stand in a file that DULY_<NAME>_FILE names."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Which source a value came from, and under which name."""

    kind: Kind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} ({self.name})" if self.name else self.kind


@dataclass(frozen=True, slots=True)
class Reader:
    """How one setting is read from text or from code."""

    read: Callable[[object, str], Any]
    default: object


READERS: Final[dict[str, Reader]] = {
    "url": Reader(url, defaults.URL),
    "app": Reader(text, None),
    "schema": Reader(text, defaults.SCHEMA),
    "migrate": Reader(choice("auto", "check", "off"), None),
    "lease": Reader(duration, defaults.LEASE),
    "heartbeat": Reader(duration, defaults.HEARTBEAT),
    "poll": Reader(duration, None),
    "notify": Reader(optional_switch, None),
    "pool": Reader(count, defaults.POOL),
    "timeout": Reader(duration, defaults.TIMEOUT),
    "attempts": Reader(count, defaults.ATTEMPTS),
    "concurrency": Reader(count, defaults.CONCURRENCY),
    "threads": Reader(count, defaults.THREADS),
    "isolated": Reader(optional_count, None),
    "processes": Reader(processes, Processes(defaults.PROCESSES)),
    "queues": Reader(name_list, None),
    "grace": Reader(span, defaults.GRACE),
    "poison": Reader(count, defaults.POISON),
    "max_jobs": Reader(optional_count, None),
    "max_memory": Reader(optional_size, None),
    "max_bytes": Reader(optional_size, None),
    "min_free_disk": Reader(optional_size, None),
    "max_payload": Reader(size, defaults.MAX_PAYLOAD),
    "max_nesting": Reader(count, defaults.MAX_NESTING),
    "blobs": Reader(folder_url, None),
    "keep": Reader(span, defaults.KEEP),
    "keep_dead": Reader(duration, defaults.KEEP_DEAD),
    "host": Reader(text, defaults.HOST),
    "port": Reader(count, defaults.PORT),
    "prefix": Reader(text, "/"),
    "public_url": Reader(text, None),
    "trusted_proxies": Reader(text, None),
    "log": Reader(choice("text", "json"), None),
    "log_level": Reader(choice("debug", "info", "warning", "error"), "info"),
    "actor": Reader(text, None),
    "secret": Reader(secret_list, None),
    "keys": Reader(secret_list, None),
    "encrypt": Reader(switch, False),
    "health_token": Reader(secret_list, None),
    "alerts": Reader(url_list, None),
    "alive_url": Reader(url_list, None),
    "debug": Reader(switch, False),
}


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One line of `duly check`."""

    name: str
    value: str
    origin: Origin


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The values in force. None means: whoever uses it decides by what it finds (store, terminal, cores)."""

    url: str
    app: str | None
    schema: str
    migrate: Literal["auto", "check", "off"] | None
    lease: timedelta
    heartbeat: timedelta
    poll: timedelta | None
    notify: bool | None
    pool: int
    timeout: timedelta
    attempts: int
    concurrency: int
    threads: int
    isolated: int | None
    processes: Processes
    """A worker's; "1..8" starts and stops them by how long jobs wait."""
    queues: str | None
    """As on the command line: "mail:8,reports:2"; None is all declared ones."""
    grace: timedelta
    poison: int
    max_jobs: int | None
    max_memory: int | None
    max_bytes: int | None
    """What the store may take; nearer to it, less important queues are refused. None: as much as comes."""
    min_free_disk: int | None
    """What stays free of the disk of an SQLite file."""
    max_payload: int
    max_nesting: int
    blobs: Path | None
    """Where the content of blobs lies; None: there are none."""
    keep: timedelta
    keep_dead: timedelta
    host: str
    """Where servers listen."""
    port: int
    prefix: str
    """The path before every path of a server."""
    public_url: str | None
    """Where clients reach the server; None: as each request says."""
    trusted_proxies: str | None
    """Addresses of proxies that are believed whose request it is, separated by commas."""
    log: Literal["text", "json"] | None
    log_level: str
    actor: str | None
    secret: Hidden | None = None
    """What tickets and sessions are signed with, the first one signing; None: the store's own key."""
    keys: Hidden | None = None
    """What payloads are encrypted with, the first one encrypting and every one decrypting; None: they are not."""
    encrypt: bool = False
    """Whether all payloads are, but those of tasks and queues that say otherwise."""
    health_token: Hidden | None = None
    """What /metrics of a worker asks for; needed where `--health` listens off loopback."""
    alerts: Hidden | None = None
    """Where alerts go, beside what code says: "oncall=slack+https://…,log:"."""
    alive_url: Hidden | None = None
    """Asked once a minute by whoever looks at the alerts, so that an outside watcher hears when nobody does."""
    debug: bool
    origins: Mapping[str, Origin] = field(repr=False)
    hidden: tuple[str, ...] = ()
    """Variables of the environment that a value in code hides."""

    @cached_property
    def budget(self) -> Budget:
        """How large the store may become."""
        return Budget(self.max_bytes, self.min_free_disk)

    @cached_property
    def bounds(self) -> Bounds:
        """How large the arguments of one job may be."""
        return Bounds(self.max_payload, self.max_nesting)

    def overridden(self, **flags: object) -> Settings:
        """These settings with what a command line said; None is "not said"."""
        said = {
            name: READERS[name].read(value, f"--{_dashed(name)}")
            for name, value in flags.items()
            if value is not None
        }
        origins = {**self.origins, **{name: Origin("flag", f"--{_dashed(name)}") for name in said}}
        return checked(replace(self, **said, origins=origins))

    def rows(self) -> list[SettingRow]:
        """Every setting as text, with its origin and without passwords."""
        return [SettingRow(name, _shown(getattr(self, name)), self.origins[name]) for name in READERS]


def resolve(
    code: Mapping[str, object], *, environ: Mapping[str, str] | None = None, directory: Path | None = None
) -> Settings:
    """Read every source once. UsageError for an unknown DULY_ variable or key, and for a value that cannot be read."""
    environment = _from_environment(os.environ if environ is None else environ)
    path = _pyproject(Path.cwd() if directory is None else directory)
    project = {} if path is None else _from_pyproject(path)
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for name, reader in READERS.items():
        variable = PREFIX + name.upper()
        if code.get(name) is not None:
            raw, origin, label = code[name], Origin("code"), name
        elif name in environment:
            raw, origin, label = environment[name], Origin("environment", variable), variable
        elif name in project:
            raw, origin, label = project[name], Origin("pyproject.toml", str(path)), f"[tool.duly] {name}"
        else:
            values[name], origins[name] = _default(name, reader), Origin("default")
            continue
        values[name], origins[name] = reader.read(raw, label), origin
    hidden = tuple(
        PREFIX + name.upper() for name in READERS if name in environment and code.get(name) is not None
    )
    return checked(Settings(**values, origins=origins, hidden=hidden))


def checked(settings: Settings) -> Settings:
    """Return them if they can hold together; UsageError with the value to write else."""
    least = settings.heartbeat * defaults.HEARTBEATS_PER_LEASE
    if least > settings.lease:
        raise UsageError(
            f"heartbeat {compact_duration(settings.heartbeat)} x {defaults.HEARTBEATS_PER_LEASE} is longer than "
            f"the lease {compact_duration(settings.lease)}: one slow commit would lose it; write a lease of "
            f"'{compact_duration(least)}' or more, or a shorter heartbeat"
        )
    if settings.keep_dead < timedelta(days=1):
        raise UsageError(
            f"keep_dead={compact_duration(settings.keep_dead)} is shorter than a day: nobody would see a dead letter; "
            "write '1d' or more"
        )
    if settings.min_free_disk is not None and parse_url(settings.url).kind == "postgres":
        raise UsageError(
            "min_free_disk: the disk of a PostgreSQL server cannot be seen from here; write max_bytes instead, which "
            "bounds the tables of duly"
        )
    return settings


def _default(name: str, reader: Reader) -> object:
    # The default file, too, is found from the working directory once and for all.
    return url(reader.default, name) if name == "url" else reader.default


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    known = {PREFIX + name.upper(): name for name in READERS}
    files = {f"{PREFIX}{name.upper()}_FILE": name for name in FROM_FILES}
    for variable, value in environ.items():
        if not variable.startswith(PREFIX):
            continue
        if variable in files:
            if value.strip():
                found[files[variable]] = _content(variable, value.strip(), environ)
            continue
        name = known.get(variable)
        if name is None:
            raise UsageError(
                f"the environment sets {variable}, which duly does not know{_nearest(variable, known)}"
            )
        # Compose files and CI pass unset variables on as empty ones.
        if value.strip():
            found.setdefault(name, value)
    return found


def _content(variable: str, path: str, environ: Mapping[str, str]) -> str:
    """What stands in a file that a variable names, as Docker and Kubernetes hand secrets over."""
    if environ.get(variable.removesuffix("_FILE"), "").strip():
        raise UsageError(
            f"the environment sets both {variable.removesuffix('_FILE')} and {variable}; keep one"
        )
    try:
        content = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{variable}={path} cannot be read: {error}") from error
    if not content:
        raise UsageError(f"{variable}={path} is empty; write the value into that file")
    return content


def _pyproject(directory: Path) -> Path | None:
    for folder in (directory, *directory.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            return path
    return None


def _from_pyproject(path: Path) -> dict[str, object]:
    try:
        table = _table_of(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    for name in table:
        if name not in READERS:
            raise UsageError(f"{path}: [tool.duly] has the unknown key {name!r}{_nearest(name, READERS)}")
    return dict(table)


@lru_cache(maxsize=4)
def _table_of(text: str) -> Mapping[str, object]:
    """[tool.duly], parsed once: each App of a process finds the same file, and a large one takes 10 ms."""
    table: Mapping[str, object] = tomllib.loads(text).get("tool", {}).get("duly", {})
    return table


def _nearest(word: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else f"; it knows {', '.join(known)}"


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _shown(value: object) -> str:
    match value:
        case None:
            return "auto"
        case bool():
            return "on" if value else "off"
        case timedelta():
            return compact_duration(value)
        case _:
            return without_password(str(value))


def without_password(text: str) -> str:
    """The text of a URL as it may be shown."""
    return re.sub(r"(?i)([?&]password=)[^&]*", r"\1***", shown(text))
