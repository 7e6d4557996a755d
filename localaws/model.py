"""Shared by the models of services: the clock they are given, refusals in AWS's words, rate limits, and page tokens that expire."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
ACCOUNT = "123456789012"
"""Account of models for which none is named; moto's."""


class Clock(Protocol):
    """A real or a virtual clock. Models read it and never wait."""

    def time(self) -> float: ...


class Refused(Exception):
    """A service's error answer: its code, its words, the HTTP status, and the further members that some errors have."""

    def __init__(self, code: str, message: str, status: int = 400, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status = code, message, status
        self.details: Mapping[str, Any] = details or {}


def listed(value: Any) -> list[Any]:
    """Returns a list as it is, and anything else as the only entry of one: policies and templates leave out the list of one entry."""
    return value if isinstance(value, list) else [value]


def moment(seconds: float) -> datetime:
    """Returns the time in botocore's form."""
    return datetime.fromtimestamp(seconds, timezone.utc)


@dataclass
class Tokens:
    """A token bucket: so many calls at once, so many per second."""

    rate: float
    burst: float
    throttled: int = 0
    """Number of calls that found the bucket empty."""
    _left: float = field(default=-1.0)
    _at: float = 0.0

    def take(self, now: float) -> bool:
        if self._left < 0:
            self._left, self._at = self.burst, now
        self._left = min(self.burst, self._left + (now - self._at) * self.rate)
        self._at = now
        if self._left < 1:
            self.throttled += 1
            return False
        self._left -= 1
        return True


@dataclass
class Pages:
    """Page tokens of one listing."""

    size: int
    """The most entries of a page, whatever was asked for."""
    life_s: float = 3600.0
    error: str = "InvalidPaginationToken"
    _tokens: dict[str, tuple[int, float]] = field(default_factory=dict)
    _number: itertools.count[int] = field(default_factory=itertools.count)

    def issue(self, place: int, now: float) -> str:
        token = f"page-{next(self._number)}"
        self._tokens[token] = (place, now + self.life_s)
        return token

    def resume(self, token: str | None, now: float) -> int:
        """Returns the position of a token, 0 for none; an expired token is refused like an invented one."""
        if token is None:
            return 0
        place, until = self._tokens.get(token, (0, 0.0))
        if now >= until:
            raise Refused(self.error, f"The pagination token {token} is invalid or has expired")
        return place

    def cut_seen(
        self, every: list[T], sees: Callable[[T], bool], token: str | None, wanted: int, now: float
    ) -> tuple[list[T], str | None]:
        """The page of what is seen. A token is a place among all, so that nothing is skipped or repeated when sight changes."""
        place, size, page = self.resume(token, now), min(wanted, self.size), list[T]()
        while place < len(every) and len(page) < size:
            if sees(every[place]):
                page.append(every[place])
            place += 1
        return page, self.issue(place, now) if place < len(every) else None

    def cut(self, found: list[T], token: str | None, wanted: int, now: float) -> tuple[list[T], str | None]:
        """Returns the page of a token, and the token of the next page."""
        start, size = self.resume(token, now), min(wanted, self.size)
        following = self.issue(start + size, now) if start + size < len(found) else None
        return found[start : start + size], following
