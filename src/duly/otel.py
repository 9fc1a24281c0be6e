"""`duly.otel`: what an application with OpenTelemetry imports."""

from duly.integrations.otel import instrument

__all__ = ["instrument"]
