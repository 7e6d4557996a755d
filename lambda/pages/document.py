"""Renders a page as one file of HTML that asks for nothing, runs nothing, and shows every text of others as text."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from contract.links import CONSOLES
from pages import words

TEMPLATES = Path(__file__).with_name("templates")
BASE, STYLE = "base.html", "style.css"
MOST_BYTES = 500_000
"""Bytes of a page: a mail takes it, and a phone shows it."""
MOST_ADDRESS = 2000
"""Bytes of a link's address, as it is written."""
MOST_NUMBER = 10**15
"""Larger numbers are shown with a power of ten, as NaN and Infinity are in words."""
_PATH = re.compile(r"[-MLh0-9. ]*")
_ADDRESS = re.compile(r"[!#$%&()*+,./0-9:;=?@A-Z_a-z~-]+")


def render(template: str, *, rows: Sequence[Any] = (), **values: Any) -> bytes:
    """Returns the page of a template in UTF-8, of at most MOST_BYTES: the same bytes for the same values.

    The page shows the first of `rows`, as many as fit. Where none fits, it ends below the outcome and says so.
    """
    shown = len(rows)
    while len(page := _write(template, rows=rows[:shown], is_cut=False, **values)) > MOST_BYTES:
        if not shown:
            return _write(BASE, is_cut=True, **values)
        shown = shown * 3 // 4
    return page


def _write(template: str, **values: Any) -> bytes:
    page = _templates().get_template(template).render(policy=content_policy(), **values)
    return page.encode("utf-8", "replace")


@cache
def content_policy() -> str:
    """Returns the page's Content-Security-Policy: its own style, by the hash of it, and nothing else."""
    style = _templates().get_template(STYLE).render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def is_console(address: str) -> bool:
    """Whether an address is one of AWS's console, and so may be a link."""
    if not _ADDRESS.fullmatch(address) or words.count_bytes(address) > MOST_ADDRESS:
        return False
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        plain = parts.port is None and parts.username is None
    except ValueError:
        return False
    return (
        parts.scheme == "https" and plain and any(host == one or host.endswith(f".{one}") for one in CONSOLES.values())
    )


def keep_links(make: Callable[[], Iterable[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Returns words and address of each link; none where a name is garbled, so that no address has it: a page comes all the same."""
    try:
        return [(name, address) for name, address in make() if is_console(address)]
    except (IndexError, KeyError, ValueError):
        return []


@cache
def _templates() -> Environment:
    """Every text that a template shows passes through `_show`: a template cannot forget it."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_show,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "visible": words.visible,
        "number": words.number,
        "usd": words.usd,
        "duration": words.duration,
        "moment": words.moment,
        "count": words.count,
        "path": _draw,
        "is_console": is_console,
    }
    return made


def _draw(path: str) -> Markup:
    """Returns a path of a drawing, which may be longer than any text. It has numbers and four letters, or is not drawn."""
    return Markup(path) if _PATH.fullmatch(path) else Markup("")


def _show(value: object) -> object:
    """Markup comes of macros and of paths alone: no fact is any."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, int | float):
        return value if abs(value) < MOST_NUMBER else words.number(value)
    return words.visible(str(value))
