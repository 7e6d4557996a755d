"""What KMS says of a key under which disks are encrypted: plain facts, which a policy judges."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeKey:
    """A key that exists, or that this account may not look at."""

    state: str = ""
    """KMS's word, as in `PendingDeletion`."""
    usage: str = ""
    """What it is for, as in `SIGN_VERIFY`."""
    spec: str = ""
    """What it is made of, as in `RSA_2048`."""
    spot: bool | None = None
    """Whether a grant lets AWS's role for spot use it; None where its grants are not shown."""
    hidden: str = ""
    """Why KMS does not show it to this account; empty where it does."""
