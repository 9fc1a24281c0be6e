"""What one run of the command line shares: which App, which store, and how to print.

Loads the user's code only for commands that need it: data commands work when the code does not import.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, field

import click

from duly.app import App
from duly.client.settings import resolve
from duly.core.errors import DulyError, UsageError

from .loading import MISSING, load_app
from .output import Form, Out


@dataclass(slots=True)
class Session:
    """The flags that every command takes, and what follows from them."""

    app_reference: str | None = None
    url: str | None = None
    form: Form = Form.table
    quiet: bool = False
    _apps: dict[str, App] = field(default_factory=dict)

    @property
    def out(self) -> Out:
        return Out(self.form, self.quiet)

    def reference(self, argument: str | None = None) -> str:
        """`MODULE[:NAME]` from the argument, else -a, DULY_APP, [tool.duly]. UsageError when nobody says."""
        reference = argument or self.app_reference or resolve({}).app
        if reference is None:
            raise UsageError(MISSING)
        return reference

    def app(self, argument: str | None = None) -> App:
        """The user's App, imported and with --url in force."""
        reference = self.reference(argument)
        if reference not in self._apps:
            app = load_app(reference)
            if self.url is not None:
                app.client.override(url=self.url)
            self._apps[reference] = app
        return self._apps[reference]

    def has_reference(self) -> bool:
        """Whether anything says which App is meant."""
        return (self.app_reference or resolve({}).app) is not None

    def data(self) -> App:
        """An App for commands that need only the store: that of --url, of DULY_URL, else the user's own."""
        app = self._data()
        if app.settings.url.startswith("memory:"):
            raise UsageError(
                f"{app.settings.url} lives inside the process that opened it, and a command sees nothing of it; look "
                "with jobs.inspect there, or write sqlite:///duly.db"
            )
        return app

    def _data(self) -> App:
        if self.app_reference is not None:
            return self.app()
        if "" not in self._apps:
            settings = resolve({})
            if self.url is None and settings.origins["url"].kind == "default" and settings.app is not None:
                return self.app()
        return self.store_only()

    def store_only(self) -> App:
        """An App without tasks, on the store of --url, DULY_URL, [tool.duly] or the default."""
        if "" not in self._apps:
            self._apps[""] = App()
            if self.url is not None:
                self._apps[""].client.override(url=self.url)
        return self._apps[""]

    def keep(self, reference: str, app: App) -> None:
        """Use this App for a reference; the empty one stands for the store alone."""
        self._apps[reference] = app

    def close(self) -> None:
        """Let go of every store that was opened; after Ctrl-C the end of the process does that."""
        if isinstance(sys.exc_info()[1], KeyboardInterrupt):
            # It may have struck between the taking and the giving back of a lock that closing would wait for.
            return
        for app in self._apps.values():
            with suppress(DulyError):
                app.close()


def session_of(context: click.Context) -> Session:
    """The session of this run; made at the first question."""
    root = context.find_root()
    if not isinstance(root.obj, Session):
        root.obj = Session()
        root.call_on_close(root.obj.close)
    return root.obj
