"""What lives in one process or one database alone: recognised by its shape, refused with what to pass instead."""

import asyncio
import collections
import io
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from duly.core.errors import UsageError
from duly.core.payload import Arguments
from tests.core import clients
from tests.core.handlers import NOON, Job, Order, plain, refused, taking


def a_generator() -> Iterator[int]:
    yield 1


async def a_coroutine() -> None: ...


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (io.BytesIO, "is an open file (BytesIO); pass its path"),
        (threading.Lock, "is a lock (lock); it means nothing in another process"),
        (threading.RLock, "is a lock"),
        (threading.Event, "is a lock"),
        (lambda: asyncio.Semaphore(2), "is a lock"),
        (a_generator, "is a generator, which yields its values only once; pass list(...)"),
        (lambda: iter([1]), "yields its values only once"),
        (lambda: map(str, [1]), "is a map, which yields"),
        (lambda: range(3), "is a range; pass list(...) of it"),
        ({}.keys, "is a dict_keys; pass list(...) of it"),
        (collections.deque, "is a deque; pass list(...) of it"),
        (lambda: MappingProxyType({}), "is a mappingproxy; pass dict(...) of it"),
        (lambda: len, "is a builtin_function_or_method, not data"),
        (lambda: a_generator, "is a function, not data; make it a task of its own"),
        (lambda: int, "is a type, not data"),
        (lambda: Order, "is a type, not data"),
        (lambda: io, "is a module, not data"),
        (lambda: ValueError("x"), "is an error (ValueError); pass str(error)"),
        (object, "is an object, which has no form in JSON; pass its id, or a dataclass"),
        (lambda: 1j, "is a complex"),
        (lambda: SimpleNamespace(tolist=list), "pass its .tolist()"),
        (
            lambda: clients.library("httpx2").Request("GET", "http://x"),
            "is an HTTP request or response (Request)",
        ),
        (lambda: clients.library("httpx2").Response(200), "is an HTTP request or response (Response)"),
        (
            lambda: clients.library("requests").Session(),
            "is a session or connection (Session); open one in the hand",
        ),
        (lambda: clients.library("httpx2").Client, "is a type, not data"),
    ],
)
def test_what_lives_in_this_process_is_refused(make: Callable[[], object], advice: str) -> None:
    error = refused(Arguments(plain, job_type=Job), {"it": make()})

    assert error.path == "x.it"
    assert advice in str(error)


def test_an_open_file_a_socket_and_a_connection_are_refused(tmp_path: Path) -> None:
    arguments = Arguments(plain, job_type=Job)
    connection = sqlite3.connect(tmp_path / "a.db")

    with (tmp_path / "a.txt").open("w") as file, socket.socket() as endpoint:
        assert "is an open file (TextIOWrapper); pass its path" in str(refused(arguments, file))
        assert "is a socket (socket); pass its address" in str(refused(arguments, endpoint))
    assert "is a session or connection (Connection)" in str(refused(arguments, connection))
    assert "is a session or connection (Cursor)" in str(refused(arguments, connection.cursor()))
    connection.close()


def test_a_coroutine_is_awaited_first() -> None:
    coroutine = a_coroutine()

    error = refused(Arguments(plain, job_type=Job), coroutine)
    coroutine.close()

    assert "is a coroutine that nobody awaited; await it first" in str(error)


def test_a_proxy_that_raises_when_it_is_looked_at_is_refused() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> object:
            raise RuntimeError("working outside of a request")

    class WorseProxy:
        def __getattribute__(self, name: str) -> object:
            raise RuntimeError("working outside of a request")

    assert "is a Proxy, which has no form in JSON" in str(refused(Arguments(plain, job_type=Job), Proxy()))
    assert "cannot be written as JSON" in str(refused(Arguments(plain, job_type=Job), WorseProxy()))


def test_a_row_of_sqlalchemy_is_refused_with_its_id_as_the_way_out() -> None:
    orm, sqlalchemy = clients.library("sqlalchemy.orm"), clients.library("sqlalchemy")
    base = orm.declarative_base()
    columns = {"__tablename__": "customer", "id": sqlalchemy.Column(sqlalchemy.Integer, primary_key=True)}
    customer = type("Customer", (base,), columns)

    error = refused(Arguments(plain, job_type=Job), {"who": customer(id=7)})

    assert str(error) == (
        "argument 'x.who' is a database row (Customer); pass its id and load it in the handler"
    )
    with pytest.raises(UsageError, match="annotated with the database row Customer; pass its id"):
        taking(list[customer]).encode(([],), {})  # type: ignore[valid-type]


def test_a_mapped_dataclass_of_sqlalchemy_is_a_row_too() -> None:
    orm, sqlalchemy = clients.library("sqlalchemy.orm"), clients.library("sqlalchemy")

    @dataclass
    class Customer:
        id: int

    table = sqlalchemy.Table(
        "customer", sqlalchemy.MetaData(), sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True)
    )

    @dataclass
    class Wrapping:
        who: Any

    arguments, read_before = taking(Wrapping), taking(Customer)
    assert read_before.names == ("x",)
    orm.registry().map_imperatively(Customer, table)

    assert "is a database row (Customer)" in str(refused(Arguments(plain, job_type=Job), Customer(7)))
    assert "is a database row (Customer)" in str(refused(read_before, Customer(7)))
    assert refused(arguments, Wrapping(Customer(7))).path == "x.who"
    with pytest.raises(UsageError, match="database row Customer"):
        taking(Customer).encode((Customer(7),), {})


def test_a_row_of_django_is_refused() -> None:
    settings = clients.library("django.conf").settings
    if not settings.configured:
        settings.configure(INSTALLED_APPS=[], DATABASES={})
        clients.library("django").setup()
    models = clients.library("django.db.models")
    body = {"__module__": __name__, "Meta": type("Meta", (), {"app_label": "shop"})}
    customer = type("Customer", (models.Model,), body)

    assert "is a database row (Customer); pass its id" in str(
        refused(Arguments(plain, job_type=Job), customer())
    )
    with pytest.raises(UsageError, match="database row Customer"):
        taking(customer).encode((1,), {})


def test_attrs_classes_survive_and_their_parts_are_checked() -> None:
    attrs = clients.library("attrs")
    parcel = attrs.make_class("Parcel", {"weight": attrs.field(type=float), "extra": attrs.field(type=Any)})
    arguments = taking(parcel)

    sent = parcel(1.5, [1])

    assert arguments.decode(arguments.encode((sent,), {}))["x"] == sent
    assert refused(arguments, parcel(1.5, (1,))).path == "x.extra"
    assert refused(arguments, parcel(float("nan"), 1)).path == "x.weight"


def test_pydantic_models_survive_and_their_parts_are_checked() -> None:
    pydantic = clients.library("pydantic")
    model = pydantic.create_model(
        "Booking",
        __config__=pydantic.ConfigDict(extra="allow", populate_by_name=True),
        room=(int, pydantic.Field(gt=0, alias="roomNumber")),
        when=(datetime, ...),
        more=(Any, None),
    )
    arguments = taking(model)

    sent = model(roomNumber=7, when=NOON, colour="red")
    data = arguments.encode((sent,), {})

    assert b'"roomNumber":7' in data
    assert arguments.decode(data)["x"] == sent
    assert refused(arguments, model(room=7, when=NOON, more=(1,))).path == "x.more"
    assert refused(arguments, model(room=7, when=NOON, colour={1})).path == "x.colour"
    assert "without a time zone" in str(refused(arguments, model(room=7, when=datetime(2026, 1, 1))))  # noqa: DTZ001
    assert "room" in str(refused(arguments, model.model_construct(room=-1, when=NOON)))
    assert "greater than 0" in str(refused(arguments, model.model_construct(room=-1, when=NOON)))


def test_a_pydantic_model_that_refuses_as_a_whole_says_why() -> None:
    pydantic = clients.library("pydantic")

    def check(model: Any) -> Any:
        if model.first > model.last:
            raise ValueError("first lies behind last")
        return model

    span = pydantic.create_model(
        "Span",
        first=(int, ...),
        last=(int, ...),
        __validators__={"check": pydantic.model_validator(mode="after")(check)},
    )
    nested = pydantic.create_model("Trip", legs=(list.__class_getitem__(span), ...))

    assert "first lies behind last" in str(refused(taking(span), span.model_construct(first=2, last=1)))
    error = refused(taking(nested), nested.model_construct(legs=[span.model_construct(first=2, last=1)]))
    assert "legs[0]: Value error, first lies behind last" in str(error)


def test_a_pydantic_model_with_a_reader_of_its_own_may_refuse_in_its_own_words() -> None:
    pydantic = clients.library("pydantic")

    def refuse(data: bytes) -> object:
        raise ValueError("not today")

    model = pydantic.create_model("Moody", x=(int, ...))
    model.model_validate_json = refuse

    assert "not today" in str(refused(taking(model), model(x=1)))


def test_a_class_whose_own_code_fails_is_refused() -> None:
    @dataclass
    class Fragile:
        x: int

        def __post_init__(self) -> None:
            if self.x > 1:
                raise LookupError("too many")

    fragile = Fragile(1)
    fragile.x = 2

    assert "cannot be read: LookupError: too many" in str(refused(taking(Fragile), fragile))
