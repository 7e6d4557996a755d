"""One invocation of the attendant: all that it has of the world outside, and the round that it begins."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from botocore.config import Config

from attendant.rounds import LookRound
from attendant.silence import list_gaps
from aws.ec2 import Ec2
from aws.state import State
from contract.environments import AttendantEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One invocation. No other module reads a clock, sleeps, draws by chance, or makes a client of the table or of EC2."""

    env: AttendantEnvironment
    function: str
    """The function's own name, by which it invokes itself."""
    state: State
    open_state: Callable[[Config], State]
    """The same table with another patience of its calls."""
    ec2: Callable[[str, Config], Ec2]
    """EC2 of a region, with the patience of its calls."""
    clock: Callable[[], float]
    """UTC epoch seconds."""
    sleep: Callable[[float], None]
    chance: random.Random
    remaining_s: Callable[[], float]
    """What is left of the invocation's time, in seconds."""

    def begin_round(self, *, is_pass: bool = False, is_urgent: bool = False) -> LookRound:
        """Begins a round now. The time since the last pass is read from the table."""
        gaps_s = list_gaps(self.state.last_pass())
        return LookRound(began=self.clock(), gaps_s=gaps_s, is_pass=is_pass, is_urgent=is_urgent)
