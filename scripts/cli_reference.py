"""Writes docs/cli.md from the commands themselves. With --check it only says whether the page is up to date.

The page is one section a command: what it does, how it is called, its options.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from duly.cli.main import cli

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"

HEAD = """\
# The command line

This page is generated from the commands (`python scripts/cli_reference.py`); `duly COMMAND --help` says the same.

Every command takes these four:

| option | meaning |
|---|---|
{common}

Commands that run your code (`worker`, `check`, `migrate APP`, `enqueue` with checks) take the App as `MODULE[:NAME]`:
the argument, else `-a`, else `DULY_APP`, else `[tool.duly] app` in `pyproject.toml`. `NAME` may be an App or a function
that returns one; without it the module must hold exactly one App. The working directory is on `sys.path`.
All other commands need only the store: `--url`, else `DULY_URL`, else the App's.

| exit code | meaning |
|---|---|
| 0 | ok |
| 1 | failed: the answer is no |
| 2 | usage: the call is wrong, and the error says what to write |
| 3 | not found |
| 4 | conflict: it is there, but no longer in a state that allows the act; a queue that is full |
| 5 | the store is unreachable, or needs `duly migrate` |
| 130 | interrupted |

Errors are one line on standard error, and an object under `-o json`:
`{{"error": {{"kind": …, "message": …, "exit": …}}}}`.

"""


def page() -> str:
    """The whole page."""
    root = click.Context(cli, info_name="duly")
    common = [_row(option) for option in _options(cli) if option.name in _common()]
    sections = "\n".join(section for name in cli.list_commands(root) for section in _sections(root, name))
    return HEAD.format(common="\n".join(common)) + sections


def _sections(parent: click.Context, name: str) -> Iterator[str]:
    assert isinstance(parent.command, click.Group)
    command = parent.command.get_command(parent, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent)
    yield _section(context)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            yield from _sections(context, inner)


def _section(context: click.Context) -> str:
    command = context.command
    level = "##" if context.command_path.count(" ") == 1 else "###"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    rows = [_row(option) for option in _options(command) if option.name not in _common()]
    lines = [f"{level} {context.command_path}", "", f"`{usage}`", "", *_prose(command.help or "")]
    if rows:
        lines += ["| option | meaning |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _prose(text: str) -> Iterator[str]:
    """Paragraphs as they are; what click keeps verbatim becomes a code block."""
    for paragraph in cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            yield "```sh"
            yield from (line.strip() for line in paragraph.splitlines()[1:])
            yield "```"
        else:
            yield paragraph
        yield ""


def _options(command: click.Command) -> list[click.Option]:
    return [item for item in command.params if isinstance(item, click.Option)]


def _common() -> set[str | None]:
    return {"app", "url", "output", "quiet"}


def _row(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    value = "" if option.is_flag else f" `{option.metavar or option.type.name.upper()}`"
    text = (option.help or "").replace("|", "\\|")
    return f"| {names}{value.replace('|', chr(92) + '|')} | {text} |"


def main() -> int:
    wanted = page()
    if "--check" in sys.argv[1:]:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == wanted:
            return 0
        print(f"{PAGE.name} is out of date; run: python scripts/cli_reference.py", file=sys.stderr)
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
