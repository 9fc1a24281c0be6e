"""`duly.sentry`: what an application with Sentry imports."""

from duly.integrations.sentry import instrument

__all__ = ["instrument"]
