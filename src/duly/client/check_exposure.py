"""What `duly check` finds about what leaves this machine: databases, sinks and servers without TLS, password or token.

Reads settings; asks the store only for its tokens. Never shows a secret.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from duly.client.settings import Settings
from duly.stores.urls import parse_url

_SECURE = frozenset({"require", "verify-ca", "verify-full"})
_CHECKED = frozenset({"verify-ca", "verify-full"})


def is_here(host: str) -> bool:
    """Whether only this machine is reached by a host's name or address; a socket's folder, too."""
    name = host.strip("[]")
    if not name or name == "localhost" or name.startswith("/"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def exposed_store(settings: Settings, environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """A PostgreSQL that is elsewhere, without TLS or without a password."""
    address = parse_url(settings.url)
    if address.kind != "postgres":
        return
    parts = urlsplit(address.url)
    said = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    authority = parts.netloc.rpartition("@")[2]
    named = said.get("host") or authority or environ.get("PGHOST", "")
    hosts = [_without_port(unquote(host)) for host in named.split(",")]
    away = [host for host in hosts if not is_here(host)]
    if not away:
        return
    where = ", ".join(away)
    mode = said.get("sslmode") or environ.get("PGSSLMODE") or "prefer"
    if mode not in _SECURE:
        yield (
            f"the database on {where} may be spoken to in the clear (sslmode={mode}); add "
            "?sslmode=verify-full&sslrootcert=system to DULY_URL, or the file of its authority"
        )
    elif mode not in _CHECKED:
        yield (
            f"TLS to the database on {where} does not look whose certificate it is (sslmode={mode}); write "
            "sslmode=verify-full with sslrootcert="
        )
    if not _proves_itself(parts.password, said, environ):
        yield (
            f"nothing proves to the database on {where} who this is: DULY_URL has no password, and neither PGPASSWORD, "
            "a ~/.pgpass nor sslcert= is there; put the URL with its password into a file and name it in DULY_URL_FILE"
        )


def exposed_sinks(settings: Settings) -> Iterator[str]:
    """Sinks of alerts, and the watcher, that are told in the clear."""
    for name, urls in (("DULY_ALERTS", settings.alerts), ("DULY_ALIVE_URL", settings.alive_url)):
        for text in urls or ():
            url = text.partition("=")[2] if "=" in text.partition(":")[0] else text
            parts = urlsplit(url)
            scheme = parts.scheme.rpartition("+")[2]
            if scheme == "http" and not is_here(parts.hostname or ""):
                yield f"{name} tells {parts.hostname} in the clear; write https:// in place of http://"


def exposed_server(settings: Settings, *, tokens: bool) -> Iterator[str]:
    """A server that others reach, without tokens or TLS."""
    if is_here(settings.host):
        return
    if not tokens:
        yield (
            f"DULY_HOST={settings.host} is reached from elsewhere, and no token is made: duly serve refuses to start; "
            "run: duly token create --scope enqueue"
        )
    public = settings.public_url or ""
    if settings.trusted_proxies is None and not public.startswith("https://"):
        yield (
            f"DULY_HOST={settings.host} is reached from elsewhere, and nothing says who ends TLS: tokens would travel "
            "in the clear; name the proxy in DULY_TRUSTED_PROXIES, or give duly serve --tls-cert and --tls-key"
        )
    elif public.startswith("http://"):
        yield f"DULY_PUBLIC_URL={public} hands out links without TLS; write https://"


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0] if host.count(":") == 1 else host


def _proves_itself(password: str | None, said: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    files = (environ.get("PGPASSFILE"), said.get("passfile"), str(Path.home() / ".pgpass"))
    given = (password, said.get("password"), said.get("sslcert"), said.get("service"))
    more = (environ.get("PGPASSWORD"), environ.get("PGSSLCERT"), environ.get("PGSERVICE"))
    return any(given) or any(more) or any(name and Path(name).is_file() for name in files)
