"""What the runs come to: the rows of the table, and which of the bounds are not met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

OURS, S5CMD, AWS = "the agent's engine", "s5cmd", "AWS CLI"
SMALL, LARGE = "5,000 x 64 KiB", "4 x 256 MiB"
BYTES = {SMALL: 5000 * 65536, LARGE: 4 * 2**28}
FASTER: dict[tuple[str, str], dict[str, float]] = {
    ("commit", SMALL): {S5CMD: 4.0, AWS: 14.0},
    ("commit", LARGE): {S5CMD: 1.1, AWS: 1.8},
    ("restore", SMALL): {S5CMD: 3.0},
    ("restore", LARGE): {S5CMD: 1.0},
}
FASTER_LATE: dict[tuple[str, str], dict[str, float]] = {
    ("commit", SMALL): {S5CMD: 2.0},
    ("restore", SMALL): {S5CMD: 2.0},
}
"""The same where each connection has 90 MB/s: packs go over five of them, within the memory of one process."""
MOST_WALKS = 2.0
MOST_MB, MOST_CPU = 128.0, 1.2
"""MB of one process, and processor time for large files beside s5cmd's."""
HEAD = (
    "| answers | what | by | median | min | max | beside ours | CPU a GB | peak memory |",
    "|---|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True, slots=True)
class Run:
    seconds: float
    cpu_s: float
    peak_mb: float
    """Largest resident set, 1 MB = 1,000,000 bytes."""
    own_mb: float
    """The same without the bare interpreter, where there is one of ours."""
    whole_s: float
    """With the start of the process."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """A pass over 10,000 unchanged files, beside a bare walk over them: medians of the same process, taken in turn."""

    pass_s: float
    walk_s: float
    requests: int

    @property
    def sentence(self) -> str:
        return (
            f"A pass over 10,000 unchanged files made {self.requests} requests and took {self.pass_s * 1e3:.0f} ms, "
            f"**{self.pass_s / self.walk_s:.2f} x** a bare walk over them (scandir and stat)."
        )

    @property
    def broken(self) -> list[str]:
        slow = self.pass_s > MOST_WALKS * self.walk_s
        return [f"{self.sentence} Allowed: no request, {MOST_WALKS:g} x."] if self.requests or slow else []


Found = Mapping[tuple[str, str, str], Sequence[Run]]
"""By what was done, with which files, by whom."""


def rows(answers: str, found: Found) -> list[str]:
    told = []
    for (what, files, by), runs in found.items():
        took = [run.seconds for run in runs]
        times = median(took) / median(run.seconds for run in found[what, files, OURS])
        cpu = median(run.cpu_s for run in runs) / BYTES[files] * 1e9
        seconds = [f"{of(took):.2f} s" for of in (median, min, max)]
        peak = f"{median(run.peak_mb for run in runs):.0f} MB"
        beside = "" if by == OURS else f"**{times:.2f} x**"
        told.append(f"| {' | '.join([answers, f'{what} {files}', by, *seconds, beside, f'{cpu:.1f} s', peak])} |")
    return told


def broken(answers: str, found: Found, faster: Mapping[tuple[str, str], Mapping[str, float]] = FASTER) -> list[str]:
    """The bounds that are not met, in words; never rounded up."""
    problems = []
    for (what, files), peers in faster.items():
        ours = found[what, files, OURS]
        for peer, least in peers.items():
            if not found.get((what, files, peer)):
                continue
            times = median(run.seconds for run in found[what, files, peer]) / median(run.seconds for run in ours)
            if times < least:
                problems.append(f"answers {answers}: {what} {files} is {times:.2f} times {peer}, wanted {least:g}")
        if (own_mb := max(run.own_mb for run in ours)) > MOST_MB:
            problems.append(f"answers {answers}: {what} {files} held {own_mb:.0f} MB, allowed {MOST_MB:.0f}")
        cpu = median(run.cpu_s for run in ours) / median(run.cpu_s for run in found[what, files, S5CMD])
        if files == LARGE and cpu > MOST_CPU:
            problems.append(f"answers {answers}: {what} {files} used {cpu:.2f} times s5cmd's CPU, allowed {MOST_CPU:g}")
    return problems


HELPED = """
With a network that costs nothing, the engine's 4 x 256 MiB by the number of its helpers, on as many processors as this machine has,
which the server uses as well:

| helpers | commit | CPU a GB | restore | CPU a GB |
|---|---|---|---|---|"""


def helper_rows(found: Mapping[int, Mapping[str, Run]]) -> list[str]:
    lines = list[str]()
    for count, runs in found.items():
        cells = (
            f"{BYTES[LARGE] / 1e9 / run.seconds:.2f} GB/s | {run.cpu_s / BYTES[LARGE] * 1e9:.2f} s"
            for run in runs.values()
        )
        lines.append(f"| {count} | {' | '.join(cells)} |")
    return lines
