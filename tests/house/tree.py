"""The files of this tree that people write, parsed on request. Knows which folders hold what, and no rule."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/duly"
FOLDERS = ("src", "tests", "typing_tests", "scripts", "bench", "docs", "examples", ".ci")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def files(folder: str | Path, pattern: str = "*") -> list[Path]:
    """The files below a folder of the tree, compiled ones left out; none when the folder does not exist."""
    found = sorted((ROOT / folder).rglob(pattern))
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


def everything() -> list[Path]:
    """Every file that belongs to the project, by place: what a build or a run leaves behind is elsewhere."""
    top = [path for path in sorted(ROOT.iterdir()) if path.is_file() and path.suffix not in {".db", ".log"}]
    return top + [path for folder in FOLDERS for path in files(folder)]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def functions(module: ast.Module) -> Iterator[Function]:
    for node in ast.walk(module):
        if isinstance(node, Function):
            yield node


def shown(path: Path) -> str:
    """The path as a person would write it in this tree."""
    return str(path.relative_to(ROOT))
