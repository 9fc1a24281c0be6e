"""Runs one Markdown page of the documentation: every python and console block, in order, outputs compared.

A block whose first line is `# name.py` (or .toml, .ini) is written to that file; other python blocks share one
namespace. A text block is the expected output of the block before it; console lines behind `$ ` are run; `...` stands
for any text.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from sybil.document import Document
from sybil.parsers.markdown.lexers import FencedCodeBlockLexer

FILE = re.compile(r"\A# ([\w./-]+\.(?:py|toml|ini))\n")
RUNNABLE = ("python", "console", "toml", "ini", "text")


@dataclass
class Page:
    """The state of one page while it runs: working folder, namespace and what the last block printed."""

    folder: Path
    environment: dict[str, str]
    namespace: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: str = ""

    def python(self, source: str, line: int, path: str) -> None:
        """Execute one block; what it prints is kept for the text block that may follow."""
        self.printed = ""
        output = io.StringIO()
        code = compile("\n" * line + source, path, "exec")
        with contextlib.redirect_stdout(output):
            exec(code, self.namespace)  # the documentation's own code
        self.printed = output.getvalue()

    def console(self, source: str) -> None:
        """Run each command in a shell and compare its output."""
        for command, expected in commands(source):
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=120,
            )
            output = done.stdout + done.stderr
            assert done.returncode == 0, f"$ {command}\nexit {done.returncode}\n{output}"
            if expected:
                assert matches(output, expected), (
                    f"$ {command}\nprinted:\n{output}\nthe page says:\n{expected}"
                )


def commands(source: str) -> list[tuple[str, str]]:
    """The (command, expected output) pairs of a console block."""
    pairs: list[tuple[str, str]] = []
    for line in source.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:], ""))
        elif pairs:
            command, expected = pairs[-1]
            pairs[-1] = (command, f"{expected}{line}\n")
    return pairs


def matches(output: str, expected: str) -> bool:
    """Equal but for trailing blanks; `...` in the expectation stands for anything."""
    pattern = ".*".join(re.escape(part) for part in re.split(r"\.\.\.", tidy(expected)))
    return re.fullmatch(pattern, tidy(output), re.DOTALL) is not None


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def blocks(path: Path) -> list[tuple[str, str, int]]:
    """The (language, source, line) of every fenced block that is run or compared."""
    text = path.read_text()
    found: list[tuple[str, str, int]] = []
    document = Document(text, str(path))
    for language in RUNNABLE:
        found += [
            (language, str(region.lexemes["source"]), text[: region.start].count("\n") + 1)
            for region in FencedCodeBlockLexer(language)(document)
        ]
    return sorted(found, key=lambda block: block[2])


def run(path: Path, folder: Path, environment: dict[str, str]) -> int:
    """Run the page; the number of blocks that ran."""
    page = Page(folder, environment)
    ran = 0
    for language, source, line in blocks(path):
        named = FILE.match(source)
        if named and language != "text":
            target = folder / named[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source)
        elif language == "python":
            page.python(source, line, str(path))
        elif language == "console":
            page.console(source)
        elif language == "text" and page.printed:
            assert matches(page.printed, source), (
                f"{path}:{line}\nprinted:\n{page.printed}\nthe page says:\n{source}"
            )
            page.printed = ""
        ran += 1
    return ran


def main() -> int:
    """`python -m tests.docs.pages PAGE`: run it in the current folder, with the current environment."""
    sys.path.insert(0, "")
    print(f"{run(Path(sys.argv[1]), Path.cwd(), dict(os.environ))} blocks")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
