"""Standard Webhooks: the specification's own example, and what is refused."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.errors import UsageError
from duly.core.webhook_signing import NotGenuine, check_message, read_secret, signed_headers

KEY = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
NOW = datetime.fromtimestamp(1_614_265_330, UTC)
BODY = b'{"test": 2432232314}'
OTHER = b"x" * 32


def test_the_example_of_the_specification_is_signed_as_it_says() -> None:
    headers = signed_headers([KEY], "msg_p5jXN8AQM9LWM0D4loKWxJek", NOW, BODY)

    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert check_message([KEY], headers, BODY, NOW) == "msg_p5jXN8AQM9LWM0D4loKWxJek"


def test_either_key_proves_a_message_while_secrets_change() -> None:
    both = signed_headers([OTHER, KEY], "msg_1", NOW, BODY)

    assert check_message([KEY], both, BODY, NOW) == "msg_1"
    assert check_message([OTHER], both, BODY, NOW) == "msg_1"
    with pytest.raises(NotGenuine):
        check_message([b"y" * 32], both, BODY, NOW)


@given(st.binary())
def test_another_body_is_not_genuine(body: bytes) -> None:
    headers = signed_headers([KEY], "msg_1", NOW, BODY)

    if body == BODY:
        return
    with pytest.raises(NotGenuine):
        check_message([KEY], headers, body, NOW)


@pytest.mark.parametrize("seconds", [-301, 301, 86_400])
def test_a_message_of_another_time_is_not_genuine(seconds: int) -> None:
    headers = signed_headers([KEY], "msg_1", NOW, BODY)

    with pytest.raises(NotGenuine):
        check_message([KEY], headers, BODY, NOW + timedelta(seconds=seconds))
    assert check_message([KEY], headers, BODY, NOW + timedelta(seconds=299)) == "msg_1"


def test_the_id_and_the_time_are_signed_too() -> None:
    headers = signed_headers([KEY], "msg_1", NOW, BODY)

    for changed in ({"webhook-id": "msg_2"}, {"webhook-timestamp": "1614265331"}):
        with pytest.raises(NotGenuine):
            check_message([KEY], {**headers, **changed}, BODY, NOW)


@given(st.dictionaries(st.sampled_from(["webhook-id", "webhook-timestamp", "webhook-signature"]), st.text()))
def test_hostile_headers_are_not_genuine(headers: dict[str, str]) -> None:
    with pytest.raises(NotGenuine):
        check_message([KEY], headers, BODY, NOW)


@pytest.mark.parametrize(
    "text", ["", "whsec_", "hunter2", "whsec_" + b64encode(b"short").decode(), "whsec_*"]
)
def test_a_weak_secret_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(UsageError, match="24 to 64 random bytes") as caught:
        read_secret(text)

    assert not text or text.removeprefix("whsec_") in {"", "*"} or text not in str(caught.value)
