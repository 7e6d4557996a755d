"""Words in which the Train machine tells a step's function since when, and for how long, the step is tried again."""

from __future__ import annotations

FIELD, ENTERED_AT, SECONDS = "patience", "entered_at", "seconds"
"""In the event: an object of two, the moment in which the state was entered (ISO 8601), and its patience since then."""
