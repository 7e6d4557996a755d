"""Names the fields that tell a step's function since when, and for how long, the Train machine retries the step."""

from __future__ import annotations

FIELD, ENTERED_AT, SECONDS = "patience", "entered_at", "seconds"
"""Field of the event: an object with the time at which the state was entered (ISO 8601) and its patience from then on."""
