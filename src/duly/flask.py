"""`duly.flask`: what a Flask application imports. Adds `flask duly ...`, the whole command line on its App."""

import click
from flask import Flask

from duly.app import App
from duly.cli.main import cli
from duly.cli.session import Session
from duly.client.reference import reference_of
from duly.integrations import flask as glue
from duly.integrations.flask import accepted
from duly.integrations.wsgi import Correlation


def init_app(web: Flask, jobs: App, *, at: str | None = None) -> None:
    """Join the two: handlers run in the application's context, duly's errors become problems, `flask duly` works.

    With `at`, the path at which your proxy leads to `duly serve`, as "/duly", `accepted` hands out tickets.
    """
    glue.name_place(web, jobs, at)
    glue.surround(web, jobs)
    glue.explain_errors(web)
    web.cli.add_command(_command(jobs))


def _command(jobs: App) -> click.Command:
    @click.command(
        "duly",
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        add_help_option=False,
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def duly(arguments: tuple[str, ...]) -> None:
        """Everything of `duly` on this application's jobs: flask duly worker, flask duly status, ..."""
        reference = reference_of(jobs)
        session = Session(app_reference=reference)
        session.keep(reference, jobs)
        cli.main(list(arguments), prog_name="flask duly", obj=session)

    return duly


__all__ = ["Correlation", "accepted", "init_app"]
