"""Pillow, or a sentence that says what to install. The demo's other modules import it from here."""

from __future__ import annotations

from duly.core.errors import UsageError

try:
    from PIL import Image, ImageDraw, ImageOps, UnidentifiedImageError
except ImportError as missing:
    raise UsageError("the demo needs Pillow; run: pip install 'duly[demo]'") from missing

__all__ = ["Image", "ImageDraw", "ImageOps", "UnidentifiedImageError"]
