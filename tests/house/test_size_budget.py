"""No giant file and no giant function: where people call a code base hard to follow, there is always one."""

import ast

from tests.house.tree import SOURCE, Function, files, functions, parsed, shown

FILE_LINES = 500
FUNCTION_LINES = 60


def lines_without_docstring(function: Function) -> int:
    assert function.end_lineno is not None
    whole = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return whole
    docstring = function.body[0]
    assert docstring.end_lineno is not None
    return whole - (docstring.end_lineno - docstring.lineno + 1)


def test_no_source_file_is_longer_than_its_budget() -> None:
    lengths = {shown(path): len(path.read_text().splitlines()) for path in files(SOURCE, "*.py")}

    too_long = {name: length for name, length in lengths.items() if length > FILE_LINES}

    assert lengths
    assert not too_long, f"split these files (at most {FILE_LINES} lines): {too_long}"


def test_no_function_is_longer_than_its_budget() -> None:
    too_long = {
        f"{shown(path)}:{function.lineno} {function.name}": lines_without_docstring(function)
        for path in files(SOURCE, "*.py")
        for function in functions(parsed(path))
        if lines_without_docstring(function) > FUNCTION_LINES
    }

    assert not too_long, f"split these functions (at most {FUNCTION_LINES} lines): {too_long}"
