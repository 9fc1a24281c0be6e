"""The shop under test, as every test of this folder gets it."""

import pytest

from duly import App
from tests.testing.shop import Shop


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def duly_app(shop: Shop) -> App:
    return shop.jobs
