"""Transient or permanent: the user's rules first, then what HTTP statuses and misfit calls mean."""

import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import FunctionType
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.classify import Rule, Verdict, check_rules, classify, read_retry_after
from duly.core.errors import PayloadError, UsageError
from tests.core import clients
from tests.core.handlers import FEW

NOW = datetime(2026, 11, 29, 18, 0, 0, tzinfo=UTC)
PERMANENT, TRANSIENT = Verdict("permanent"), Verdict("transient")
CLIENTS = [
    clients.httpx2_error,
    clients.requests_error,
    clients.aiohttp_error,
    clients.botocore_error,
    clients.urllib_error,
]
MakeError = Callable[[int, dict[str, str]], Exception]


class Account(Exception):
    pass


class Unknown(Account):
    pass


class Gone(Unknown):
    pass


def broken_rule(error: BaseException) -> bool:
    raise RuntimeError("no")


def yes(error: BaseException) -> bool:
    return True


def no(error: BaseException) -> bool:
    return False


def judge(
    error: BaseException, permanent: tuple[Rule, ...] = (), transient: tuple[Rule, ...] = ()
) -> Verdict:
    return classify(error, permanent=permanent, transient=transient, now=NOW)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError("refused"),
        ConnectionResetError("reset"),
        TimeoutError("too slow"),
        socket.gaierror("no such host"),
        OSError(113, "no route to host"),
        ValueError("anything else"),
        SystemExit(1),
        KeyboardInterrupt(),
    ],
)
def test_what_nothing_is_known_of_is_tried_again(error: BaseException) -> None:
    assert judge(error) == TRANSIENT


@pytest.mark.parametrize("make", CLIENTS)
@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_a_status_that_passes_is_transient(make: MakeError, status: int) -> None:
    assert judge(make(status, {})) == TRANSIENT


@pytest.mark.parametrize("make", CLIENTS)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422, 451])
def test_a_refusal_is_permanent(make: MakeError, status: int) -> None:
    assert judge(make(status, {"Retry-After": "7"})) == PERMANENT


@pytest.mark.parametrize("make", CLIENTS)
def test_seconds_of_retry_after_are_obeyed(make: MakeError) -> None:
    assert judge(make(429, {"Retry-After": "7"})) == Verdict("transient", timedelta(seconds=7))


@pytest.mark.parametrize("make", CLIENTS)
def test_a_date_of_retry_after_is_obeyed(make: MakeError) -> None:
    error = make(503, {"Retry-After": "Sun, 29 Nov 2026 18:02:00 GMT"})

    assert judge(error) == Verdict("transient", timedelta(minutes=2))


def test_a_client_error_without_a_response_is_transient() -> None:
    httpx2, requests, aiohttp = (clients.library(name) for name in ("httpx2", "requests", "aiohttp"))

    assert judge(httpx2.ConnectTimeout("slow")) == TRANSIENT
    assert judge(requests.ConnectionError("refused")) == TRANSIENT
    assert judge(aiohttp.ServerDisconnectedError()) == TRANSIENT
    assert (
        judge(clients.library("botocore.exceptions").EndpointConnectionError(endpoint_url="x")) == TRANSIENT
    )


def test_a_subclass_of_a_clients_error_is_judged_like_it() -> None:
    requests = clients.library("requests")
    response = requests.Response()
    response.status_code = 404
    own: type[Exception] = type("OurError", (requests.HTTPError,), {"__module__": "shop.api"})

    assert judge(own("no", response=response)) == PERMANENT  # type: ignore[call-arg]


def test_a_throttling_answer_of_aws_is_transient_though_its_status_is_400() -> None:
    assert judge(clients.botocore_error(400, {}, code="ThrottlingException")) == TRANSIENT
    assert judge(clients.botocore_error(400, {}, code="ValidationException")) == PERMANENT


def test_an_attribute_that_raises_is_taken_as_absent() -> None:
    def response(error: object) -> NoReturn:
        raise RuntimeError("no response was set")

    own: type[Exception] = type(
        "OddError", (Exception,), {"__module__": "httpx", "response": property(response)}
    )

    assert judge(own("x")) == TRANSIENT


def test_the_nearest_class_wins() -> None:
    assert judge(Unknown(), permanent=(Unknown,), transient=(Account,)) == PERMANENT
    assert judge(Unknown(), permanent=(Account,), transient=(Unknown,)) == TRANSIENT
    assert judge(Gone(), permanent=(Account, Gone), transient=(Unknown,)) == PERMANENT
    assert judge(Gone(), permanent=(Gone, Account), transient=(Unknown,)) == PERMANENT
    assert judge(Account(), permanent=(Unknown,)) == TRANSIENT


def test_an_error_of_dulys_own_in_a_handler_is_tried_again_unless_the_user_says_otherwise() -> None:
    error = UsageError("task 'send' uses the queue 'mial', which is not declared")

    assert (judge(error), judge(error, (UsageError,))) == (TRANSIENT, PERMANENT)


def test_a_rule_of_the_user_goes_before_what_is_built_in() -> None:
    assert judge(ConnectionError(), permanent=(Exception,)) == PERMANENT
    assert judge(clients.requests_error(404, {}), transient=(OSError,)) == TRANSIENT


def test_retry_after_is_obeyed_where_the_user_says_transient() -> None:
    error = clients.requests_error(403, {"Retry-After": "30"})

    assert judge(error, transient=(OSError,)) == Verdict("transient", timedelta(seconds=30))


def test_a_predicate_goes_before_classes() -> None:
    assert judge(Unknown(), permanent=(Unknown,), transient=(yes,)) == TRANSIENT
    assert judge(Unknown(), permanent=(yes,), transient=(Unknown,)) == PERMANENT
    assert judge(Unknown(), permanent=(no, Unknown)) == PERMANENT
    assert judge(Unknown(), permanent=(yes,), transient=(yes,)) == TRANSIENT


def test_a_predicate_that_raises_counts_as_no_and_is_noted() -> None:
    verdict = judge(Unknown(), permanent=(broken_rule,), transient=(Account,))

    assert verdict == Verdict("transient", note="the rule broken_rule raised RuntimeError")
    assert judge(Unknown(), permanent=(broken_rule,)).note == "the rule broken_rule raised RuntimeError"
    assert judge(Unknown(), permanent=(Unknown,), transient=(broken_rule,)).kind == "permanent"


def test_a_class_that_claims_its_kin_without_ancestry_is_the_farthest() -> None:
    class Claiming(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return True

    class Anyone(Exception, metaclass=Claiming):
        pass

    assert judge(Unknown(), permanent=(Anyone,), transient=(Exception,)) == TRANSIENT
    assert judge(Unknown(), permanent=(Anyone,)) == PERMANENT


def test_a_group_is_permanent_only_if_all_of_it_is() -> None:
    refused, busy = clients.requests_error(404, {}), clients.requests_error(429, {"Retry-After": "9"})

    assert judge(ExceptionGroup("x", [refused, ExceptionGroup("y", [refused])])) == PERMANENT
    assert judge(ExceptionGroup("x", [refused, busy])) == Verdict("transient", timedelta(seconds=9))
    assert judge(ExceptionGroup("x", [ValueError("x")])) == TRANSIENT


def called_by_the_worker(handler: Callable[..., object], **arguments: object) -> BaseException:
    """Call a handler from a real frame of a module of ours, as the worker does."""

    def run() -> object:
        return handler(**arguments)

    own = FunctionType(run.__code__, {"__name__": "duly.worker.run"}, "run", None, run.__closure__)
    error = clients.raised(own)
    return error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)


def handler(order_id: int) -> None:
    raise TypeError("handler() missing 1 required positional argument: 'x'")


def test_a_call_that_does_not_fit_the_handler_is_permanent() -> None:
    assert judge(called_by_the_worker(handler)) == PERMANENT
    assert judge(called_by_the_worker(handler, order=1)) == PERMANENT
    assert judge(called_by_the_worker(handler, order_id=1, more=2)) == PERMANENT


def test_a_type_error_inside_the_handler_is_tried_again() -> None:
    assert judge(called_by_the_worker(handler, order_id=1)) == TRANSIENT
    assert judge(TypeError("handler() missing 1 required positional argument: 'x'")) == TRANSIENT


def test_a_type_error_that_is_no_misfit_is_tried_again() -> None:
    def add() -> object:
        text: Any = "7"
        return text + 1

    ours = FunctionType(add.__code__, {"__name__": "duly.core.payload"})

    assert judge(called_by_the_worker(add)) == TRANSIENT
    assert judge(called_by_the_worker(ours)) == TRANSIENT


def test_arguments_that_cannot_be_read_are_permanent_unless_the_handler_made_them() -> None:
    def refuse() -> NoReturn:
        raise PayloadError("argument 'x' is nan")

    ours = FunctionType(refuse.__code__, {"__name__": "duly.core.payload", "PayloadError": PayloadError})

    assert judge(called_by_the_worker(ours)) == PERMANENT
    assert judge(called_by_the_worker(refuse)) == TRANSIENT
    assert judge(called_by_the_worker(lambda: [ours()])) == TRANSIENT


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("0", timedelta(0)),
        (" 120 ", timedelta(minutes=2)),
        ("999999999999999999", timedelta(hours=24)),
        ("Sun, 29 Nov 2026 18:00:30 GMT", timedelta(seconds=30)),
        ("Sun, 29 Nov 2026 17:00:00 GMT", timedelta(0)),
        ("Mon, 01 Jan 2046 00:00:00 GMT", timedelta(hours=24)),
        ("Sun, 29 Nov 2026 18:00:60 GMT", timedelta(seconds=59)),
        ("Sun, 31 Feb 2026 18:00:00 GMT", None),
        ("Sun, 29 Nob 2026 18:00:00 GMT", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_read(text: str, wait: timedelta | None) -> None:
    assert read_retry_after(text, NOW) == wait


@FEW
@given(st.text(max_size=40))
def test_any_retry_after_is_harmless(text: str) -> None:
    wait = read_retry_after(text, NOW)

    assert wait is None or timedelta(0) <= wait <= timedelta(hours=24)


def test_a_header_that_is_no_text_is_left_alone() -> None:
    aiohttp = clients.library("aiohttp")

    assert judge(aiohttp.ClientResponseError(None, (), status=429, headers={"Retry-After": 7})) == TRANSIENT
    assert judge(aiohttp.ClientResponseError(None, (), status=429, headers=None)) == TRANSIENT


def test_rules_that_make_sense_are_taken() -> None:
    check_rules((ValueError, yes), (KeyError,))


@pytest.mark.parametrize(
    ("permanent", "transient", "advice"),
    [
        ((int,), (), "int in permanent= or transient= is no exception class"),
        ((), ("ValueError",), "must be an exception class or a function"),
        ((ValueError,), (KeyError, ValueError), "remove it from one of them"),
    ],
)
def test_rules_that_make_no_sense_are_refused(permanent: Any, transient: Any, advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_rules(permanent, transient)

    assert advice in str(caught.value)
