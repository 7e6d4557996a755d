"""One refusal, of whatever function: what is wrong, what is given, and the lines of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar


class Refusal:
    """What is given are fields that are put into the smallest input that is accepted."""

    least: ClassVar[Mapping[str, Any]]

    def __init__(self, what: str, given: Any, *says: str, without: tuple[str, ...] = (), whole: bool = False) -> None:
        """`without` removes fields; `whole`: the given value is the whole input. A line of `says` without `; allowed: ` ends with
        what its field may be."""
        self.what, self.given, self.says, self.without, self.whole = what, given, says, without, whole

    @property
    def input(self) -> Any:
        if self.whole:
            return self.given
        return {name: value for name, value in {**self.least, **self.given}.items() if name not in self.without}

    def completed(self, allowed: Callable[[str], str]) -> list[str]:
        """Returns the lines of the answer; `allowed` finds what the field of a line may be."""
        return [line if "; allowed: " in line else f"{line}; allowed: {allowed(line)}" for line in self.says]
