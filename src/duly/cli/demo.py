"""`duly demo`: photographs are resized while a worker is killed, and every file is checked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import click

from duly.client.settings import without_password

from .errors import Failed
from .options import common
from .output import Json, Out, plain
from .progress import progress
from .session import session_of


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
@click.pass_context
def demo(context: click.Context, folder: Path | None, headless: bool) -> None:
    """Resize forty photographs, kill the worker midway, and check that nothing was lost.

    Makes photographs of several megapixels (or takes yours), two of them broken, and enqueues one job for each on
    SQLite, or on --url. A real worker resizes each into five files in processes of its own, and is killed with
    SIGKILL on the way. At the end every file is opened and compared with its photograph. Exit 0 only if all is right.

    Everything is in ./duly-demo; look around afterwards:

    \b
      duly demo
      duly demo --photos ~/Pictures
      duly dead list --url sqlite:///duly-demo/demo.db
    """
    from duly.demo import ledger as ledgers
    from duly.demo.run import Wishes, run

    session = session_of(context)
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
