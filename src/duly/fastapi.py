"""`duly.fastapi`: what a FastAPI or Starlette application imports."""

from duly.integrations.asgi import Correlation
from duly.integrations.fastapi import Accepted, mount

__all__ = ["Accepted", "Correlation", "mount"]
