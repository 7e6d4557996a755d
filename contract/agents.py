"""How long the home bucket keeps a node agent: each stands under its own digest, for longer than any job that names it."""

from __future__ import annotations

FRESH_DAYS = 7
"""Admit renews an agent that is older, and S3 counts its age from then."""
KEPT_DAYS = 60
"""S3 takes an agent away that no job was admitted with for so long: the longest job, 28 days, is over by then."""
