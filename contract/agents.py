"""Says how long the home bucket keeps a node agent: each is stored under its own digest, for longer than any job that names it."""

from __future__ import annotations

FRESH_DAYS = 7
"""Admit writes an agent again when its copy is older than this; S3 counts the age from the last write."""
KEPT_DAYS = 90
"""S3 deletes an agent with which no job was admitted for this long; by then the longest job has ended, which waits for capacity for 28
days and trains for 28."""
