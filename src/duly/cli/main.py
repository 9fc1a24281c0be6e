"""The group `duly`: finds commands lazily, and turns every error into one line and an exit code.

Each command is a module of its own that is imported only when it is asked for.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from .errors import Exit, explain, report
from .options import common

COMMANDS: Final = {
    "demo": "demo",
    "dev": "dev",
    "worker": "worker",
    "serve": "serve",
    "token": "token",
    "migrate": "migrate",
    "check": "check",
    "enqueue": "enqueue",
    "status": "status",
    "top": "top",
    "why": "why",
    "jobs": "jobs",
    "job": "job",
    "trace": "trace",
    "runs": "runs",
    "cancel": "cancel",
    "pause": "pause",
    "resume": "pause",
    "limit": "overrides",
    "block": "overrides",
    "overrides": "overrides",
    "tenants": "tenants",
    "dead": "dead",
    "operations": "operations",
    "workers": "workers",
    "schedules": "schedules",
    "alerts": "alerts",
    "audit": "audit",
    "keys": "keys",
    "plan": "plan",
    "drill": "drill",
    "bench": "bench",
}
"""Command -> module, in the order of the help."""


# Raised from click 8.2 on; before, a group without arguments shows its help by itself.
_HELP_WANTED: Final[Any] = getattr(click.exceptions, "NoArgsIsHelpError", ())


class DulyGroup(click.Group):
    """The root: lazy, in the order of a day's work, and never a traceback for a user's mistake."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"duly.cli.{COMMANDS[cmd_name]}")
        command = getattr(module, cmd_name)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name for a misspelt one."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], COMMANDS, n=1, cutoff=0.6)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise click.UsageError(f"there is no command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run and exit: click's own error pages are replaced by one line."""
        arguments = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            code = super().main(arguments, *rest, **extra)
            # `ctx.exit(n)` comes back as the value; --help and --version as 0 or None.
            sys.exit(code if isinstance(code, int) else Exit.ok)
        except (KeyboardInterrupt, click.Abort):
            click.echo("", err=True)
            sys.exit(Exit.interrupted)
        except BrokenPipeError:
            # `duly jobs | head`: the reader has seen enough. Python would complain again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(Exit.ok)
        except Exception as error:
            sys.exit(self._explained(error, arguments))

    def _explained(self, error: Exception, arguments: Sequence[str]) -> int:
        if isinstance(error, _HELP_WANTED):
            click.echo(str(error))
            return Exit.usage
        problem = explain(error)
        if problem is None:
            raise error
        report(problem, as_json=_wants_json(arguments))
        return problem.exit


@click.command(
    cls=DulyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 store unreachable, 130 interrupted.",
)
@click.version_option(package_name="duly", prog_name="duly", message="%(prog)s %(version)s")
@common
def cli() -> None:
    """Durable background jobs on SQLite or PostgreSQL.

    \b
    First steps:
      duly demo                     see jobs survive a killed worker
      duly worker shop.background   run the jobs of your App
      duly status                   what waits, what runs, and when it will be done

    Commands that run your code take the App as MODULE[:NAME], from -a, DULY_APP or [tool.duly] in pyproject.toml.
    All others need only the store: --url, DULY_URL, else the App's.
    """


def _wants_json(arguments: Sequence[str]) -> bool:
    text = " ".join(arguments)
    return any(
        form in text
        for form in (
            "-o json",
            "-o ndjson",
            "-ojson",
            "-ondjson",
            "--output=json",
            "--output json",
            "--output=ndjson",
            "--output ndjson",
        )
    )


def main() -> None:
    """The entry point of the `duly` script."""
    cli.main(prog_name="duly")


if __name__ == "__main__":
    main()
