"""What rank 0's mpirun has other nodes run, and how that ended, as the nodes of an attempt tell each other under its own prefix."""

from __future__ import annotations

from dataclasses import dataclass

MOST = 65_536
"""Bytes of such a document, at most: the command of a daemon of MPI has some 2,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteCommand:
    """What a node runs as its training."""

    command: str
    """Text for a shell, as ssh would hand it on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteEnd:
    """How it ended there."""

    code: int
    """Exit code, 128 + n after signal n."""
