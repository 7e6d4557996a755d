"""What a replay assumes of machines, of a training and of AWS: nothing of this is measured by the replay."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum

from localaws.conditions import Conditions

_AWS = Conditions()
"""What rehearsals draw, with sources."""


class Loss(Enum):
    """How AWS takes a node."""

    NOTICE = "with notice"
    ABRUPT = "without notice"
    """EC2 says at once that the instance ends."""
    SILENT = "silently"
    """EC2 goes on saying that it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """Durations are seconds; of pairs a value between the two is drawn, each as likely."""

    boot_s: tuple[float, float] = _AWS.boot_s
    """From RunInstances to the first report of a node."""
    pending_s: tuple[float, float] = (5.0, 17.0)
    """From RunInstances until EC2 says `running`, from when on it bills. The page has the sources."""
    code_s: float = 2.0
    """To fetch and to unpack the code."""
    requirements_s: float = 16.0
    """To install requirements: measured for scikit-learn."""
    environment_s: float = 3.0
    """To fetch what an earlier attempt installed: 0.7 and 2.9 s were measured for the same (decision 26)."""
    kept_after_s: float = 30.0
    """For how long an attempt has to train until what it installed is kept."""
    restore_s: float = 8.0
    """To fetch and to check a checkpoint of 1 GiB, and to read it."""
    import_s: float = 20.0
    """From the start of the command to the first step: libraries, device, data, peers."""
    save_every_s: float = 600.0
    """Between two saves of the trainer."""
    pause_s: float = 1.0
    """For which a save stops the training, to copy 1 GiB from the GPU to memory; the rest of it goes on beside. An H100 took 0.64 s a
    GiB to memory that is not pinned, and 0.02 s to memory that is (PyTorch's pull request 120378); machines of V100 are older."""
    save_s: float = 8.0
    """From the begin of a save to its name in PROGRESS_FILE: 1 GiB at the 125 MiB/s of a gp3 volume."""
    commit_s: float = 4.0
    """To bring it to S3."""
    stop_s: float = 1.0
    """To end a trainer that has nothing to save."""
    notice_s: float = 120.0
    """From the notice to the end of the instance."""
    without_notice: float = 0.05
    """Share of losses without one, where EC2 says at once that the instance ends."""
    silent: float = 0.05
    """Share of losses without one, where EC2 says so only after `vanished_s`: until then nobody but the node's silence tells."""
    vanished_s: float = 600.0
    until_the_end: bool = False
    """Whether EC2 gives new instances in the place that it is about to take back, until it has."""
    tag_s: tuple[float, float] = _AWS.tags_delay_s
    event_s: tuple[float, float] = _AWS.event_delay_s
    """Of EC2's events."""
    events_lost: float = _AWS.events_lost
    clock_s: tuple[float, float] = _AWS.clock_delay_s
    """By how much EventBridge's clock is late."""

    def before_first_step_s(self, *, kept: bool = False) -> float:
        """From the first report to the first step, but for what is waited for and restored. `kept`: an earlier attempt has kept what it
        installed."""
        return self.prepare_s(kept=kept) + self.import_s

    def prepare_s(self, *, kept: bool) -> float:
        """To make code and libraries ready."""
        return self.code_s + (min(self.environment_s, self.requirements_s) if kept else self.requirements_s)


@dataclass(frozen=True, slots=True)
class Chance:
    """Draws that depend on what they are for alone: every policy meets the same machines and losses."""

    seed: int
    trace: str

    def of(self, *what: object) -> random.Random:
        return random.Random(f"{self.seed} {self.trace} {what}")

    def boot_s(self, assumed: Assumed, stretch: int, launch: int, rank: int) -> float:
        """`launch`: the how manyeth of that stretch."""
        return self.of("boot", stretch, launch, rank).uniform(*assumed.boot_s)

    def pending_s(self, assumed: Assumed, stretch: int, launch: int, rank: int) -> float:
        """For which the node is launched, and not billed."""
        return self.of("pending", stretch, launch, rank).uniform(*assumed.pending_s)

    def loss(self, assumed: Assumed, stretch: int) -> Loss:
        drawn = self.of("loss", stretch).random()
        if drawn < assumed.silent:
            return Loss.SILENT
        return Loss.ABRUPT if drawn < assumed.silent + assumed.without_notice else Loss.NOTICE

    def ranks(self, stretch: int, nodes: int, lost: int) -> list[int]:
        """Which ranks are lost."""
        return self.of("ranks", stretch).sample(range(nodes), min(lost, nodes))
