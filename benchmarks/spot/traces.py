"""Reads the public traces of spot capacity, and says when a job of so many nodes can run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = "https://github.com/skypilot-org/spot-traces"
VARIABLE = "TRAINYARD_SPOT_TRACES"
MISSING = (
    f"The traces are not part of this repository, because they carry no licence. Fetch JSON files of {SOURCE} (names such as "
    f"preemption_4-node_aws-..._v100_1.json) into a folder, and name that folder: --traces FOLDER, or {VARIABLE}=FOLDER."
)
DAY_S = 86_400.0
NAMED = re.compile(r"(?:preemption|availability)_(\d+)-node_aws-(.+)\.json")


class Unusable(ValueError):
    """A trace cannot be used, or there is none; the message names the file and says why."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which all nodes of the job can run, in seconds of the trace."""

    begin: float
    end: float
    lost: int
    """How many nodes AWS takes at the end; 0 where the trace ends first."""

    @property
    def length(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Trace:
    """What one trace says of a job of `nodes` nodes."""

    name: str
    nodes: int
    length: float
    """Seconds."""
    stretches: tuple[Stretch, ...]

    @property
    def mean_up_s(self) -> float:
        """Of the stretches; 0 where there are none."""
        return sum(one.length for one in self.stretches) / len(self.stretches) if self.stretches else 0.0

    @property
    def interruptions(self) -> int:
        return sum(one.lost > 0 for one in self.stretches)


def traces(folder: Path) -> list[Trace]:
    """Every trace of the folder, the hardest first: that with the least mean up-time. Raises Unusable."""
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not files:
        raise Unusable(f"No trace in {folder}. {MISSING}")
    return sorted((read(file) for file in files), key=lambda one: one.mean_up_s)


def read(file: Path) -> Trace:
    """Raises Unusable."""
    named = NAMED.fullmatch(file.name)
    if named is None:
        raise Unusable(f"{file.name}: the name does not say how many nodes were asked for (preemption_4-node_aws-...)")
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError) as problem:
        raise Unusable(f"{file.name}: it is not JSON that can be read: {problem}") from problem
    gap_s, counts = _checked(file.name, content)
    nodes = int(named[1])
    kind = "" if file.name.startswith("preemption") else ", availability"
    return trace(f"{named[2]}, {nodes} node{'s' * (nodes > 1)}{kind}", nodes, gap_s, counts)


def _checked(name: str, content: Any) -> tuple[float, list[int]]:
    metadata, counts = (content.get(key) if isinstance(content, dict) else None for key in ("metadata", "data"))
    gap_s = metadata.get("gap_seconds") if isinstance(metadata, dict) else None
    if isinstance(gap_s, bool) or not isinstance(gap_s, int | float) or not 0 < gap_s < DAY_S:
        raise Unusable(f"{name}: metadata.gap_seconds is {gap_s!r}, and must be the seconds between two points")
    if not isinstance(counts, list) or not counts or not all(type(one) is int and one >= 0 for one in counts):
        raise Unusable(f"{name}: data must be a list of numbers of instances, and not empty")
    return float(gap_s), counts


def trace(name: str, nodes: int, gap_s: float, counts: list[int]) -> Trace:
    """The job can run while as many instances as it has nodes were up, or could be had. Each point holds until the next one; where the
    number falls below, so many nodes of the job are lost in that moment."""
    stretches, since = list[Stretch](), None
    for place, count in enumerate(counts):
        if count >= nodes:
            since = place if since is None else since
        elif since is not None:
            stretches.append(Stretch(since * gap_s, place * gap_s, nodes - count))
            since = None
    if since is not None:
        stretches.append(Stretch(since * gap_s, len(counts) * gap_s, 0))
    return Trace(name, nodes, len(counts) * gap_s, tuple(stretches))
