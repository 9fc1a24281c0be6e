"""The rules of statement files: one statement each, a header that says why, and the same set on both stores."""

import ast
import re
from pathlib import Path

import pytest

from tests.house.tree import SOURCE, files, parsed, shown

STORES = SOURCE / "stores"
KINDS = ("postgres", "sqlite")
QUERY_NAME = re.compile(r"[a-z]+(_[a-z0-9]+)+\.sql")
MIGRATION_NAME = re.compile(r"\d{4}(_[a-z0-9]+)+\.(sql|py)")
NOT_CODE = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"[^\"]*\"|(\$\w*\$).*?\1", re.DOTALL
)  # comments, strings, names, and function bodies between dollars


def queries(kind: str) -> list[Path]:
    return files(STORES / kind / "queries", "*.sql")


def functions(kind: str) -> list[Path]:
    """Statements that the database itself keeps: PostgreSQL's hot ones are functions of the schema."""
    return files(STORES / kind / "functions", "*.sql")


def unversioned(path: Path) -> str:
    """claim_lane_1 is the first version of the function that other stores have as claim_lane."""
    return re.sub(r"_\d+$", "", path.stem)


def statements(text: str) -> int:
    code = NOT_CODE.sub(" ", text)
    # The statements inside a trigger or a standard SQL function body belong to it.
    code = re.sub(r"\bBEGIN\b(\s+ATOMIC\b)?.*?\bEND\b", " ", code, flags=re.DOTALL | re.IGNORECASE)
    return sum(1 for part in code.split(";") if part.strip())


def only_here(kind: str) -> set[str]:
    """The statement files that a store declares as its own, in the `only_queries` of its Capabilities."""
    declared: set[str] = set()
    for path in files(STORES / kind, "*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.keyword) and node.arg == "only_queries":
                names = ast.literal_eval(node.value)
                declared |= {str(name).removesuffix(".sql") for name in names}
    return declared


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("-- purpose; nothing\nSELECT 1", 1),
        ("SELECT ';', $$ a; b $$, $x$ ; $x$ -- ;\n;", 1),
        ("SELECT 1; SELECT 2", 2),
        ("", 0),
    ],
)
def test_statements_are_counted_outside_strings_and_bodies(text: str, count: int) -> None:
    assert statements(text) == count


def test_each_file_is_named_verb_noun_and_holds_one_statement() -> None:
    faults = []
    for path in (path for kind in KINDS for path in queries(kind)):
        if not QUERY_NAME.fullmatch(path.name):
            faults.append(f"{shown(path)}: call it verb_noun.sql")
        if (count := statements(path.read_text())) != 1:
            faults.append(f"{shown(path)}: {count} statements")

    assert not faults


def test_each_file_opens_with_a_comment_that_says_what_it_is_for() -> None:
    silent = [
        shown(path)
        for path in files(STORES, "*.sql")
        if not re.match(r"--\s*\w.*\w", path.read_text().lstrip().partition("\n")[0])
    ]

    assert not silent, f"the first line is a comment: purpose; lock; index; Differs: ... ({silent})"


def test_both_stores_have_the_same_statements_but_for_those_they_declare() -> None:
    names = {kind: {unversioned(path) for path in queries(kind) + functions(kind)} for kind in KINDS}
    if not all(names.values()):
        return  # nothing to compare with yet

    one_sided = {kind: names[kind] - names[other] for kind, other in zip(KINDS, reversed(KINDS), strict=True)}

    assert one_sided == {kind: only_here(kind) for kind in KINDS}


def test_every_statement_is_used() -> None:
    unused = []
    for kind in KINDS:
        code = "\n".join(path.read_text() for path in files(STORES / kind, "*.py"))
        sql = {path: path.read_text() for path in files(STORES / kind, "*.sql")}
        for path in queries(kind):
            others = "\n".join(text for other, text in sql.items() if other != path)
            if not re.search(rf"\b{path.stem}\b", code) and not re.search(rf"\b{path.stem}\b", others):
                unused.append(shown(path))

    assert not unused, f"nothing names these statements: {unused}"


def test_migrations_are_numbered_without_a_gap() -> None:
    for kind in KINDS:
        names = [path.name for path in files(STORES / kind / "migrations") if path.name != "__init__.py"]
        numbers = sorted(int(name[:4]) for name in names if MIGRATION_NAME.fullmatch(name))

        assert len(numbers) == len(names), f"call them NNNN_words.sql: {names}"
        assert numbers == list(range(1, len(numbers) + 1)), f"{kind}: {names}"
