"""The OpenAPI document: it is made of the operations, and every route is in it."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from duly.web.api.routes import OPERATIONS
from duly.web.openapi import document
from tests.web.conftest import Place


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document(OPERATIONS)))
    return found


def references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def operations(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in made["paths"].values():
        yield from path.values()


def test_every_operation_is_described_with_what_it_refuses(made: dict[str, Any]) -> None:
    names = [operation["operationId"] for operation in operations(made)]

    assert sorted(names) == sorted(op.name for op in OPERATIONS)
    assert len(set(names)) == len(names)
    for operation in operations(made):
        assert {"401", "403", "422", "429", "503"} <= set(operation["responses"])
        assert operation["summary"]


def test_every_reference_leads_somewhere(made: dict[str, Any]) -> None:
    known = {f"#/components/schemas/{name}" for name in made["components"]["schemas"]}

    found = set(references(made))

    assert found
    assert found <= known
    assert made["openapi"] == "3.1.0"


def test_every_place_in_a_path_is_a_parameter(made: dict[str, Any]) -> None:
    for path, methods in made["paths"].items():
        for operation in methods.values():
            named = {one["name"] for one in operation.get("parameters", []) if one["in"] == "path"}
            assert named == set(re.findall(r"\{(\w+)\}", path)), path


def test_the_routes_of_the_server_are_those_of_the_document(small: Place, made: dict[str, Any]) -> None:
    served = small.client().get("/openapi.json")

    assert served.status_code == 200
    assert served.json() == made
    for path, methods in made["paths"].items():
        for method in methods:
            where = path.replace("{id}", "1").replace("{queue}", "mail")
            # Without a token: it is there, and says that one is needed.
            assert small.client().request(method.upper(), where).status_code == 401, path
