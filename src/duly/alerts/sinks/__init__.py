"""Every sink that comes with duly, and how one is read from a URL. Knows no rule and no store."""

from __future__ import annotations

import re
from typing import Final

from duly.alerts.sinks.command import Command
from duly.alerts.sinks.log import LogLine
from duly.alerts.sinks.sentry import Sentry
from duly.alerts.sinks.slack import Slack
from duly.alerts.sinks.smtp import Smtp
from duly.alerts.sinks.webhook import Webhook
from duly.core.errors import UsageError
from duly.core.notification import Sink

_FORMS: Final = (
    "log:, webhook+https://…, slack+https://…, sentry+https://KEY@HOST/PROJECT, smtp://HOST?from=…&to=…, "
    "command:PATH"
)
_NAME: Final = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,39})=(.+)", re.DOTALL)


def read_sink(url: str) -> Sink:
    """The sink that a URL means. UsageError, which does not repeat the URL, for one that means none."""
    scheme, colon, rest = url.strip().partition(":")
    if not colon:
        raise UsageError(f"a sink is a URL: {_FORMS}")
    match scheme.lower():
        case "log":
            return LogLine()
        case "command":
            return Command.from_url(rest)
        case "webhook+http" | "webhook+https":
            return Webhook.from_url(f"{scheme.partition('+')[2]}:{rest}")
        case "slack+http" | "slack+https":
            return Slack(f"{scheme.partition('+')[2]}:{rest}")
        case "sentry+http" | "sentry+https":
            return Sentry(f"{scheme.partition('+')[2]}:{rest}")
        case "smtp" | "smtps":
            return Smtp.from_url(url.strip())
    raise UsageError(f"no sink is made of {scheme[:20]!r}; write one of {_FORMS}")


def named(text: str) -> tuple[str, str]:
    """Read "oncall=slack+https://…" as (name, URL); without a name the scheme's first word is it."""
    match = _NAME.fullmatch(text.strip())
    if match is not None:
        return match[1], match[2].strip()
    scheme = text.strip().partition(":")[0]
    return scheme.partition("+")[0].lower() or "sink", text.strip()


__all__ = ["Command", "LogLine", "Sentry", "Slack", "Smtp", "Webhook", "named", "read_sink"]
