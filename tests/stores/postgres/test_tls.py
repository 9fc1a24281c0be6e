"""TLS to a real server with a certificate of its own: the options of libpq in the URL count for every connection."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from duly import App, StoreUnreachable
from tests.conftest import without_service
from tests.services import MissingService, PostgresServer


def certificate(name: str, folder: Path) -> tuple[Path, Path]:
    """A certificate that signs itself, for one name, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    try:
        other: x509.GeneralName = x509.IPAddress(ip_address(name))
    except ValueError:
        other = x509.DNSName(name)
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([other]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "server.crt", folder / "server.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    return paths


@pytest.fixture(scope="module")
def secured() -> Iterator[tuple[str, Path]]:
    """The URL of a server that offers TLS for the name localhost, and the certificate that proves it."""
    server = PostgresServer(15)
    try:
        server.start()
    except MissingService as missing:
        without_service(str(missing))
    try:
        paths = certificate("localhost", server.directory)
        owner = server.directory.stat()
        for path in paths:
            path.chmod(0o600)
            os.chown(path, owner.st_uid, owner.st_gid)
        url = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
        with psycopg.connect(url, autocommit=True) as admin:
            for name, value in zip(("ssl_cert_file", "ssl_key_file"), paths, strict=True):
                admin.execute(f"alter system set {name} = '{value}'".encode())
            try:
                admin.execute("alter system set ssl = on")
            except psycopg.Error as error:
                without_service(f"a PostgreSQL with TLS: {error}")
            admin.execute("select pg_reload_conf()")
        paths[0].chmod(0o644)
        server.directory.chmod(0o755)
        yield url.replace("127.0.0.1", "localhost"), paths[0]
    finally:
        server.stop()


def connected(url: str) -> list[bool]:
    """Whether each connection of an App that enqueues and works over this URL speaks TLS."""
    app = App(url)
    app.store.schema.migrate()

    @app.task
    def send() -> None: ...

    send.enqueue()
    with app.transaction() as connection:
        send.using(connection=connection).enqueue()
        rows = connection.execute(
            "select s.ssl from pg_stat_ssl s join pg_stat_activity a using (pid) where a.application_name = 'duly'"
        ).fetchall()
    app.close()
    return [row[0] for row in rows]


def test_a_checked_certificate_is_spoken_to_with_tls(secured: tuple[str, Path]) -> None:
    url, root = secured

    found = connected(f"{url}?sslmode=verify-full&sslrootcert={root}")

    assert found
    assert all(found)


def test_a_certificate_that_nobody_vouches_for_is_refused(secured: tuple[str, Path], tmp_path: Path) -> None:
    url, _ = secured
    other, _ = certificate("localhost", tmp_path)

    with pytest.raises(StoreUnreachable, match="certificate"):
        connected(f"{url}?sslmode=verify-full&sslrootcert={other}")


def test_a_certificate_of_another_name_is_refused(secured: tuple[str, Path]) -> None:
    url, root = secured
    elsewhere = url.replace("localhost", "127.0.0.1")

    with pytest.raises(StoreUnreachable, match="certificate"):
        connected(f"{elsewhere}?sslmode=verify-full&sslrootcert={root}")
    assert all(connected(f"{elsewhere}?sslmode=verify-ca&sslrootcert={root}"))
    assert not any(connected(f"{elsewhere}?sslmode=disable"))
