"""Page tokens that point at a place and expire."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from tests.fakes.wire import Refused


@dataclass
class Pages:
    """Tokens of one listing."""

    size: int
    """The most that a page holds, whatever was asked for."""
    life_s: float = 3600.0
    error: str = "InvalidPaginationToken"
    _tokens: dict[str, tuple[int, float]] = field(default_factory=dict)
    _number: itertools.count[int] = field(default_factory=itertools.count)

    def issue(self, place: int, now: float) -> str:
        token = f"page-{next(self._number)}"
        self._tokens[token] = (place, now + self.life_s)
        return token

    def resume(self, token: str | None, now: float) -> int:
        """The place of a token, 0 for none; an expired token is refused like a made-up one."""
        if token is None:
            return 0
        place, until = self._tokens.get(token, (0, 0.0))
        if now >= until:
            raise Refused(self.error, f"The pagination token {token} is invalid or has expired")
        return place
