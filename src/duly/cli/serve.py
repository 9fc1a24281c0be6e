"""`duly serve`: the HTTP API, tickets and what else is shown, until it is told to stop."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING

import click

from duly.app import App
from duly.client.settings import Settings, without_password
from duly.core.errors import UsageError

from .errors import Failed
from .options import common
from .session import session_of

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from uvicorn import Config

_NO_TOKENS = (
    "no live token is stored, so that nobody could ask anything: make one with duly token create --name shop "
    "--scope enqueue"
)


@click.command()
@common
@click.argument("module", required=False, metavar="[APP]")
@click.option("--host", metavar="ADDRESS", help="Where to listen. [127.0.0.1]")
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="[8899]")
@click.option("--prefix", metavar="PATH", help="The path before every path. [/]")
@click.option("--public-url", metavar="URL", help="Where clients reach it; for links. [as each request says]")
@click.option("--open", "is_open", is_flag=True, help="Answer this machine without tokens; on loopback only.")
@click.option("--rate", metavar="RATE", help='How often one token may ask, or "none". [1000/s burst 2000]')
@click.option(
    "--trusted-proxies", metavar="ADDRESS,…", help="Proxies in front, whose word on the client is believed."
)
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="PEM.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="PEM.")
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=1,
    metavar="N",
    help="So many, on one port; each counts a token's requests for itself. [1]",
)
@click.pass_context
def serve(
    context: click.Context,
    module: str | None,
    host: str | None,
    port: int | None,
    prefix: str | None,
    public_url: str | None,
    is_open: bool,
    rate: str | None,
    trusted_proxies: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    processes: int,
) -> None:
    """Answer HTTP for the jobs of APP (MODULE[:NAME]), or of a store alone.

    With an App, arguments are checked against its tasks; without one, against what workers have registered. It listens
    on this machine only unless told otherwise, and answers nobody without a token unless it is --open. One process uses
    one core; with --processes several share the port, and one that dies is replaced.

    \b
      duly serve shop.background
      duly serve --url postgresql://db/shop --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
      duly serve shop.background --open        for yourself, on loopback
    """
    session = session_of(context)
    app = session.app(module) if module is not None or session.has_reference() else session.data()
    app.client.override(
        host=host, port=port, prefix=prefix, public_url=public_url, trusted_proxies=trusted_proxies
    )
    settings = app.settings
    if (tls_cert is None) != (tls_key is None):
        raise UsageError("TLS needs both: give --tls-cert and --tls-key")
    secure = tls_cert is not None
    _refuse_open_door(app, settings.host, is_open=is_open)
    if processes > 1:
        _refuse_private_store(app)
    for line in warnings(settings, secure=secure):
        click.echo(f"warning: {line}", err=True)
    code = _run(app, is_open=is_open, rate=rate, tls=(tls_cert, tls_key), processes=processes)
    if code:
        sys.exit(code)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def warnings(settings: Settings, *, secure: bool) -> list[str]:
    """What is unwise about where it listens."""
    if is_loopback(settings.host) or secure or settings.trusted_proxies is not None:
        return []
    text = (
        f"{settings.host} is reached from elsewhere, without TLS: tokens travel in the clear. Give --tls-cert and "
        "--tls-key, or name the proxy that ends TLS with --trusted-proxies"
    )
    return [text]


def _refuse_open_door(app: App, host: str, *, is_open: bool) -> None:
    loopback = is_loopback(host)
    if is_open and not loopback:
        raise UsageError(
            f"--open on {host} would let everybody who reaches it do everything; leave --open out and make a token "
            "with duly token create, or listen on 127.0.0.1"
        )
    if is_open:
        return
    tokens = app.client.call(app.store.tokens.all)
    if not any(token.state == "live" for token in tokens):
        own = "; for yourself alone, add --open" if loopback else ""
        raise UsageError(f"{_NO_TOKENS}{own}")


def _refuse_private_store(app: App) -> None:
    if not app.store.capabilities.shared_by_processes:
        raise UsageError(
            f"{app.store.url} lives inside one process, and each of several would have a store of its own; leave "
            "--processes out, or write sqlite:///duly.db"
        )


def _run(
    app: App, *, is_open: bool, rate: str | None, tls: tuple[str | None, str | None], processes: int
) -> int:
    try:
        from duly.alerts.watch import AlertWatch
        from duly.telemetry.hub import Hub
        from duly.web.processes import Processes
        from duly.web.server import build
        from duly.web.serving import Server, run
        from duly.web.site import WebOptions
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'duly[web]'") from error
    options = WebOptions(open=is_open)
    if rate is not None:
        options = WebOptions(open=is_open, rate=None if rate == "none" else rate)
    web = build(app, options, prefix=app.settings.prefix)
    config = _config(web, app.settings, tls)
    stop_streams = web.state.site.watcher.stop
    alerts, hub = AlertWatch(app.client), Hub()
    hub.listen(app.client.tell)
    if processes == 1:
        _greet(app, is_open=is_open, secure=config.is_ssl)
        return run(Server(config, stop_streams), [alerts], hub)
    sockets = _listen(app.settings)
    _greet(app, is_open=is_open, secure=config.is_ssl)
    # Once for all: what is wrong with a certificate is told here, and any process goes on with another's TLS session.
    config.load()
    # Threads and connections do not survive a fork; each process opens its own.
    app.close()

    def serve_one(first: bool, started: Callable[[], None]) -> int:
        try:
            return run(Server(config, stop_streams, started), [alerts] if first else [], hub, sockets)
        finally:
            app.close()

    return Processes(processes, serve_one, sockets).run()


def _config(web: Starlette, settings: Settings, tls: tuple[str | None, str | None]) -> Config:
    import uvicorn

    certificate, key = tls
    return uvicorn.Config(
        web,
        host=settings.host,
        port=settings.port,
        proxy_headers=settings.trusted_proxies is not None,
        forwarded_allow_ips=settings.trusted_proxies,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        access_log=False,
        server_header=False,
        log_level=settings.log_level,
        timeout_graceful_shutdown=10,
    )


def _listen(settings: Settings) -> list[socket]:
    from duly.web.processes import bind

    try:
        return bind(settings.host, settings.port)
    except OSError as error:
        why = str(error.strerror).partition(" (while")[0]
        raise Failed(f"cannot listen on {settings.host}, port {settings.port}: {why}") from error


def _greet(app: App, *, is_open: bool, secure: bool) -> None:
    settings, scheme = app.settings, "https" if secure else "http"
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    click.echo(
        f"duly serves {scheme}://{shown}:{settings.port}{settings.prefix} ({_place(settings.url)})", err=True
    )
    click.echo(f"dashboard: {_way_in(app, is_open=is_open, scheme=scheme)}", err=True)


def _way_in(app: App, *, is_open: bool, scheme: str) -> str:
    """How whoever has started it comes to the dashboard. Only a terminal on this machine is shown a login: logs and
    service managers keep what they read."""
    from duly.client.logins import login_link, make_login

    settings = app.settings
    if is_open:
        return login_link(settings, "", scheme).partition("/login")[0]
    if not (is_loopback(settings.host) and sys.stderr.isatty()):
        return "duly token login prints a link that opens it once"
    made = make_login(app.operate, app.client)
    return f"{login_link(settings, made.code, scheme)} (opens once, within 10 minutes)"


def _place(url: str) -> str:
    path = url.removeprefix("sqlite:///")
    return str(Path(path)) if path != url else without_password(url)
