"""Renders a page as one file of HTML."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(template: str, **values: Any) -> bytes:
    """Returns the page of a template in UTF-8."""
    return _templates().get_template(template).render(**values).encode("utf-8", "replace")


@cache
def _templates() -> Environment:
    folder = Path(__file__).with_name("templates")
    return Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)
