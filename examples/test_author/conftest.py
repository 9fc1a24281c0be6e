"""The tests' own database. It is the file in which duly_test keeps the jobs, so that both share transactions."""

from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from duly.testing import DulyTest


@pytest.fixture
def session(duly_test: DulyTest) -> Iterator[Session]:
    engine = create_engine(duly_test.url)
    with Session(engine) as session:
        session.execute(text("create table report (day text)"))
        session.commit()
        yield session
    engine.dispose()
