"""Environments of the functions that start campaigns and builds by themselves."""

from __future__ import annotations

from dataclasses import dataclass

from contract.environments import JobsEnvironment, StateEnvironment
from contract.timing import Timing

CHECK_S = Timing().start_check_s


@dataclass(frozen=True, slots=True, kw_only=True)
class StarterEnvironment(JobsEnvironment):
    """Environment of the function that starts campaigns, and tells people of what was refused."""

    machines: dict[str, str]
    """What campaigns start (`Started`) to the ARN of its state machine."""
    messages: str
    """URL of the queue that it reads."""
    letters: str
    """URL of the queue of messages that it gave up."""
    topic: str
    again_s: float
    """After how long a message comes back whose start has to wait."""
    check_s: float = CHECK_S
    """After how long an execution that was started is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEnvironment(StateEnvironment):
    """Environment of the function that asks for the heads of branches."""

    build_machine: str
    """ARN of the Build machine."""
    messages: str
    """URL of the starter's queue: it sees how the builds ended."""
    git_hosts: dict[str, str]
    """Host from which code may be fetched to the name of the secret with its token, empty for none."""
    check_s: float = CHECK_S
    """After how long the starter asks for a build that was started."""
