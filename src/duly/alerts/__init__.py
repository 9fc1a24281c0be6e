"""Alerts: where notifications go. The rules are duly.core.alerting's; `Alert` says for a queue what differs."""

from duly.alerts.sinks import Command, LogLine, Sentry, Slack, Smtp, Webhook, read_sink
from duly.client.alert import Alert
from duly.core.notification import Notification, Sink, SinkFailed

__all__ = [
    "Alert",
    "Command",
    "LogLine",
    "Notification",
    "Sentry",
    "Sink",
    "SinkFailed",
    "Slack",
    "Smtp",
    "Webhook",
    "read_sink",
]
