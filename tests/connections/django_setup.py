"""Django without a project: connections to this test's databases, under aliases that are made and taken away."""

import itertools
from urllib.parse import urlsplit

import django
from django.apps import apps
from django.conf import settings
from django.db import connections

if not settings.configured:
    settings.configure(INSTALLED_APPS=[], DATABASES={}, USE_TZ=False, TIME_ZONE="Asia/Tokyo")
if not apps.ready:
    django.setup()

_numbers = itertools.count(1)


def add(url: str) -> str:
    """The alias of a new connection."""
    alias = f"test{next(_numbers)}"
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        said: dict[str, object] = {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": url.removeprefix("sqlite:///"),
        }
    else:
        said = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts.path.lstrip("/"),
            "USER": parts.username,
            "HOST": parts.hostname,
            "PORT": parts.port,
        }
    full = connections.configure_settings({"default": {}, alias: said})
    connections.settings[alias] = full[alias]
    return alias


def remove(alias: str) -> None:
    """Close it, whatever state it is in."""
    connection = connections[alias]
    connection.in_atomic_block = False
    connection.close()
    del connections[alias]
    del connections.settings[alias]


__all__ = ["add", "connections", "remove"]
