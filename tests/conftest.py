"""Fixtures for all tests: real servers, fresh databases, and guards against what a test may leave behind.

Each pytest process starts servers of its own on first use (about one second), so a test may restart them.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.children import strangers
from tests.databases import databases_of, migrate
from tests.services import MissingService, PostgresServer

SERVER_FIXTURES = {"postgres15", "postgres18", "postgres", "postgres_url", "empty_postgres_url"}
MISSING = "MISSING SERVICE: "
STORES = ("sqlite-wal", "sqlite-truncate", "postgres15", "postgres18")

settings.register_profile(
    "default", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", settings.get_profile("default"), max_examples=1000)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests marked `long` too, at full length")
    parser.addoption("--browser", action="store_true", help="run the tests marked `browser` too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [name for name in ("long", "browser") if not config.getoption(f"--{name}")]
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        (others if any(map(item.get_closest_marker, left_out)) else kept).append(item)
    for item in kept:
        if SERVER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.postgres)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    _tell_conformance(terminalreporter)
    skipped = [str(report.longrepr) for report in terminalreporter.getreports("skipped")]
    missing = [text for text in skipped if MISSING in text]
    if missing:
        terminalreporter.section("SERVICES ARE MISSING", red=True, bold=True)
        terminalreporter.line(f"{len(missing)} tests did not run. They must, before anything is released.")
        for text in sorted({text.partition(MISSING)[2].rstrip("')") for text in missing}):
            terminalreporter.line(f"  {text}", red=True)


def _tell_conformance(terminalreporter: pytest.TerminalReporter) -> None:
    """How many cases of the suite each store has passed; that they are as many is a test of its own."""
    passed = Counter(
        store
        for report in terminalreporter.getreports("passed")
        for store in STORES
        if report.when == "call" and f"::test_store[{store}-" in report.nodeid
    )
    if passed:
        told = ", ".join(f"{store} {passed[store]}" for store in STORES)
        terminalreporter.line(f"conformance cases passed: {told}")


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def without_service(reason: str) -> None:
    """Skip with a loud line, or fail where everything must be there (CI=true)."""
    if in_ci():
        pytest.fail(MISSING + reason, pytrace=False)
    pytest.skip(MISSING + reason)


@pytest.fixture(scope="session")
def long_run(request: pytest.FixtureRequest) -> bool:
    """Whether this run has time: `make test-long`."""
    return bool(request.config.getoption("--long"))


@pytest.fixture(scope="session", autouse=True)
def clean_environment() -> Iterator[None]:
    """No setting of whoever runs the tests may reach them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DULY_")]:
            patch.delenv(name)
        yield


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Fail a test that ends while a process it started still runs."""
    before = strangers()
    yield
    left = {pid: line for pid, line in strangers().items() if pid not in before}
    assert not left, f"the test left processes behind: {left}"


def _server(version: int) -> Iterator[PostgresServer]:
    server = PostgresServer(version)
    try:
        server.start()
    except MissingService as missing:
        without_service(str(missing))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres15() -> Iterator[PostgresServer]:
    yield from _server(15)


@pytest.fixture(scope="session")
def postgres18() -> Iterator[PostgresServer]:
    yield from _server(18)


@pytest.fixture
def postgres(request: pytest.FixtureRequest) -> PostgresServer:
    """Version 15, or the one asked for: `@pytest.mark.parametrize("postgres", [15, 18], indirect=True)`."""
    version = getattr(request, "param", 15)
    server = request.getfixturevalue(f"postgres{version}")
    assert isinstance(server, PostgresServer)
    if not server.running:
        server.resume()
    return server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a database for this test alone on the server of `postgres`, with duly's schema and no rows in it."""
    with databases_of(postgres).lend() as url:
        yield url


@pytest.fixture
def empty_postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a new database without duly's schema."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    """Where this test's database file will be; it does not exist yet."""
    return tmp_path / "jobs.db"


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with duly's tables and no rows, to be copied: making one takes five times as long as a test of it."""
    path = tmp_path_factory.mktemp("migrated") / "jobs.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(sqlite_path: Path, migrated_file: Path) -> str:
    """The URL of a file of this test's own with duly's tables and no rows in it."""
    if not sqlite_path.exists():
        shutil.copyfile(migrated_file, sqlite_path)
    return f"sqlite:///{sqlite_path}"
