"""What rounds of a rehearsal come to: a table of parts, and the bounds that they must keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

WHOLE, ADMIT = "whole", "start to Admit"
BOUNDS = {WHOLE: 60.0, ADMIT: 20.0}
"""Seconds, of a warm rehearsal on two quiet cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Seconds."""

    whole_s: float
    cpu_s: float
    """Of all processes that it waited for, itself included."""
    parts: Mapping[str, tuple[float, float]]
    """Name to when it began and how long it took."""

    @property
    def admit_s(self) -> float:
        return self.parts["Admit"][0]


def rows(rounds: Sequence[Round]) -> Iterator[str]:
    """Medians, in the order in which the parts of the first round began."""
    yield f"{'part':<40} {'began s':>8} {'took s':>8}  all"
    for name, (_, _) in sorted(rounds[0].parts.items(), key=lambda part: part[1][0]):
        spans = [one.parts[name] for one in rounds if name in one.parts]
        yield _row(name, [span[1] for span in spans], f"{median(span[0] for span in spans):8.1f}")
    yield _row(ADMIT, [one.admit_s for one in rounds])
    yield _row(WHOLE, [one.whole_s for one in rounds])
    yield _row("processor time", [one.cpu_s for one in rounds])


def broken(rounds: Sequence[Round]) -> list[str]:
    """The bounds that the medians do not keep, a line each."""
    found = {WHOLE: median(one.whole_s for one in rounds), ADMIT: median(one.admit_s for one in rounds)}
    return [
        f"{name}: {found[name]:.1f} s, wanted at most {bound:g} s"
        for name, bound in BOUNDS.items()
        if found[name] > bound
    ]


def _row(name: str, took: Sequence[float], began: str = " " * 8) -> str:
    return f"{name:<40} {began} {median(took):8.1f}  {', '.join(f'{one:.1f}' for one in took)}"
