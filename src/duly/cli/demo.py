"""`duly demo`: photographs are resized while a worker is killed, and every file is checked; or a site to try."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from duly.client.settings import without_password
from duly.core.errors import UsageError

from .errors import Failed
from .options import common, duration
from .output import Json, Out, plain
from .progress import progress
from .session import Session, session_of

if TYPE_CHECKING:
    from duly.demo.site.run import Opened


class _Shown:
    """The demo's watcher on a terminal or in a log."""

    def __init__(self, out: Out, headless: bool) -> None:
        self._out = out
        self._headless = headless

    def say(self, text: str) -> None:
        self._out.hint(text)

    def stage(self, label: str) -> AbstractContextManager[Callable[[int, int, str], None]]:
        shown = self._out.for_people and not self._out.quiet
        return progress(label, shown=shown, plain=self._headless)


@click.command(short_help="See jobs survive a killed worker.")
@common
@click.option(
    "--photos",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Use the photographs of this folder; made ones fill up to forty.",
)
@click.option("--headless", is_flag=True, help="Plain lines instead of a bar.")
@click.option("--site", is_flag=True, help="Open a small photo site with its dashboard, until Ctrl-C.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="Of the site. [8800, or a free one]")
@click.option(
    "--pace", type=duration("--pace"), metavar="DURATION", help="The site's pause after a thumbnail. [400ms]"
)
@click.pass_context
def demo(
    context: click.Context,
    folder: Path | None,
    headless: bool,
    site: bool,
    port: int | None,
    pace: timedelta | None,
) -> None:
    """Resize forty photographs, kill the worker midway, and check that nothing was lost.

    Makes photographs of several megapixels (or takes yours), two of them broken, and enqueues one job for each on
    SQLite, or on --url. A real worker resizes each into five files in processes of its own, and is killed with
    SIGKILL on the way. At the end every file is opened and compared with its photograph. Exit 0 only if all is right.

    Everything is in ./duly-demo; look around afterwards:

    \b
      duly demo
      duly demo --photos ~/Pictures
      duly dead list --url sqlite:///duly-demo/demo.db

    With --site it is a web site instead: send a picture, follow its ticket, see five thumbnails, and watch the
    dashboard meanwhile. Its pictures are in ./duly-demo-site.
    """
    session = session_of(context)
    if site:
        if folder is not None or headless:
            raise UsageError("--site takes pictures from your browser; leave --photos and --headless out")
        _open_site(session, port, pace)
        return
    if port is not None or pace is not None:
        raise UsageError("--port and --pace are the site's; add --site")
    from duly.demo import ledger as ledgers
    from duly.demo.run import Wishes, run

    ledger = run(Wishes(folder, session.url), _Shown(session.out, headless))
    document: Json = plain(ledger)
    if isinstance(document, dict):
        document["ok"] = ledger.ok
        document["url"] = without_password(ledger.url)
    session.out.answer(document, lambda: ledgers.lines(ledger))
    if not ledger.ok:
        raise Failed(f"the demo found {len(ledger.failures)} things wrong")
    session.out.hint(
        f"The files are in {ledger.folder}. Look around: duly jobs --url {without_password(ledger.url)}"
    )


def _open_site(session: Session, port: int | None, pace: timedelta | None) -> None:
    try:
        from duly.demo.site.run import PACE, Wishes, run
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'duly[demo,web]'") from error

    def opened(found: Opened) -> None:
        document: Json = plain(found)
        if isinstance(document, dict):
            document["url"] = without_password(found.url)
        session.out.answer(document, lambda: _places(found))
        session.out.hint("Ctrl-C ends all of it.")

    run(Wishes(url=session.url, port=port, pace=PACE if pace is None else pace.total_seconds()), opened)


def _places(found: Opened) -> list[str]:
    return [
        f"site       {found.site}",
        f"dashboard  {found.login}   (opens once)",
        f"worker     process {found.worker}; kill -9 it, and look what becomes of your picture",
        f"files      {found.folder}",
    ]
