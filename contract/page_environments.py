"""Environment of the function that writes pages."""

from __future__ import annotations

from dataclasses import dataclass

from contract.environments import JobsEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEnvironment(JobsEnvironment):
    """Environment of the function that writes the pages of jobs, grids and searches."""

    node_role: str
    """Id of the nodes' role (`AROA...`): the first half of a node's `aws:userid`."""
    machine: str
    """ARN of the Train machine."""
    grid_machine: str
    search_machine: str
    messages: str
    """URL of the queue that it reads, and writes."""
    again_s: float
    """After how long a page is written again that could not have everything of an end: the report comes minutes after an abort."""
