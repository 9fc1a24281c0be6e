"""The share of the oldest among what is given away."""

import pytest

from duly.core.ageing import aged


def test_one_in_eight_is_the_oldest() -> None:
    assert 124 <= sum(aged(given, 1) for given in range(1_000)) <= 126
    assert aged(17, 500) == 62


def test_a_claim_of_many_gives_what_as_many_claims_of_one_give() -> None:
    for given in range(100):
        assert aged(given, 20) == sum(aged(given + number, 1) for number in range(20))


def test_the_first_seven_are_the_most_urgent_and_no_sixteen_are_without_an_oldest() -> None:
    assert aged(0, 7) == 0
    assert all(aged(given, 16) for given in range(10_000))


@pytest.mark.parametrize("tenants", range(1, 40))
def test_no_number_of_tenants_in_turn_leaves_one_without_its_oldest_for_ever(tenants: int) -> None:
    turns = 400
    for tenant in range(tenants):
        own = [aged(given, 1) for given in range(tenant, turns * tenants, tenants)]
        assert any(own)
