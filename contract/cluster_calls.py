"""What functions ask the function that speaks with the cluster of Kubernetes, and its environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from contract.environments import Environment


class PodVerb(str, Enum):
    """What is to be done."""

    FIND = "find"
    """Of one MPIJob: it, and its pods."""
    LIST = "list"
    """All MPIJobs of the deployment."""
    LIST_OPEN = "list-open"
    """Those that were not seen to have ended."""
    END = "end"
    DELETE = "delete"
    WATCH = "watch"
    """Count machines that no MPIJob needs, for the alarm."""

    @classmethod
    def of_later_version(cls) -> PodVerb:
        """It changes nothing."""
        return cls.LIST


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCall:
    """One call."""

    verb: PodVerb
    name: str = ""
    """Of the MPIJob."""
    why: str = ""
    """Why it ends, which its annotation keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodJob:
    """An MPIJob, as far as those who end what is left over need it."""

    name: str
    created_at: float | None
    """UTC epoch seconds by the cluster's clock."""
    is_live: bool
    """Whether it may have pods: it is not over, and not suspended."""
    marks: dict[str, str] = field(default_factory=dict)
    """Our tags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterApiEnvironment(Environment):
    """Environment of that function."""

    deployment: str
    home_region: str
    cluster: str
    """Name of the cluster."""
