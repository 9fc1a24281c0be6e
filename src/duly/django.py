"""`duly.django`: what a Django project names in its settings."""

from duly.integrations.django import Correlation

__all__ = ["Correlation"]
