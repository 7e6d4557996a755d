"""Reads a page as a browser does, and says what of it no template has."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from pages.document import is_console

VOID = frozenset({"meta"})
"""Elements without an end tag."""
BARE = (
    *("head", "body", "p", "h1", "h2", "h3", "strong", "code", "bdi", "tbody", "thead", "tr", "table", "footer"),
    *("li", "ol", "ul", "dl", "dt", "dd", "figure", "figcaption", "summary", "span"),
)
ALLOWED = {
    **dict.fromkeys(BARE, frozenset({"class"})),
    "html": {"lang"},
    "meta": {"charset", "name", "content", "http-equiv"},
    "title": {"id"},
    "desc": {"id"},
    "style": set[str](),
    "a": {"class", "href", "rel"},
    "main": {"id"},
    "section": {"class", "aria-label"},
    "details": {"open"},
    "pre": {"class", "tabindex"},
    "div": {"class", "tabindex", "role", "aria-label", "aria-hidden"},
    "th": {"scope", "class"},
    "td": {"class"},
    "svg": {
        "class",
        "height",
        "width",
        "viewbox",
        "preserveaspectratio",
        "role",
        "aria-label",
        "aria-labelledby",
        "aria-hidden",
        "x",
        "y",
    },
    "rect": {"class", "x", "y", "width", "height", "rx"},
    "line": {"class", "x1", "x2", "y1", "y2"},
    "path": {"class", "d", "vector-effect"},
}
"""Elements of the templates, with their attributes."""
DATA = frozenset({"aria-label", "content"})
"""Attributes that hold text of others."""
PLAIN = re.compile(r"[-A-Za-z0-9 .%#_]*")


@dataclass(slots=True)
class Page(HTMLParser):
    """A page that was parsed."""

    source: str
    strange: list[str] = field(default_factory=list)
    """What no template has."""
    links: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    headings: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    policy: str = ""
    title: str = ""
    style: str = ""
    text: str = ""
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self, convert_charrefs=True)
        self.feed(self.source)
        self.close()
        self.strange += [f"{one} is not closed" for one in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.strange.append(f"/{tag} closes another element")

    def handle_comment(self, data: str) -> None:
        self.strange.append(f"comment {data[:40]}")

    def handle_pi(self, data: str) -> None:
        self.strange.append(f"instruction {data[:40]}")

    def handle_data(self, data: str) -> None:
        place = self._open[-2:]
        if place == ["head", "title"]:
            self.title += data
        elif place == ["head", "style"]:
            self.style += data
        else:
            self.text += data

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag not in ALLOWED:
            self.strange.append(tag)
            return
        self.strange += [f"{tag} {name}" for name in given if name not in ALLOWED[tag]]
        self.strange += [
            f"{tag} {name}={value[:60]}"
            for name, value in given.items()
            if name not in {*DATA, "href"} and not PLAIN.fullmatch(value)
        ]
        if "href" in given:
            self.links.append(given["href"])
            is_ours = given["href"] == "#page" or (
                is_console(given["href"]) and given.get("rel") == "noopener noreferrer"
            )
            self.strange += [] if is_ours else [f"href {given['href'][:60]}"]
        self.ids += [given["id"]] if "id" in given else []
        self.labels += given.get("aria-labelledby", "").split()
        self.headings += [int(tag[1])] if re.fullmatch(r"h[1-6]", tag) else []
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]


def read_page(body: bytes) -> Page:
    """Returns a page as it was parsed."""
    return Page(source=body.decode())
