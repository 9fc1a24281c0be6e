"""Which addresses may be called on a stranger's word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.addresses import is_public


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2002:0101:0101::1"])
def test_an_address_of_everybody_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "198.18.0.1",
        "192.0.2.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "2606:4700:4700::1111%eth0",
        "fd00::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "::1.1.1.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "2002:7f00:1::1",
        "2002:c0a8:101::1",
        "localhost",
        "",
        "2130706433",
    ],
)
def test_no_other_address_is(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses(v=4, network="10.0.0.0/8"))
def test_a_private_address_stays_one_inside_any_other(address: object) -> None:
    assert not is_public(str(address))
    assert not is_public(f"::ffff:{address}")
    assert not is_public(f"64:ff9b::{address}")


@given(st.text())
def test_no_other_text_is_an_address(text: str) -> None:
    assert is_public(text) in {True, False}
