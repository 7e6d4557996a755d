"""What every block of settings is: closed, strict, and never changed once it is read."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

CLOSED = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Block(BaseModel):
    """A block of settings: no unknown keys, no text for numbers, no change afterwards."""

    model_config = CLOSED | ConfigDict(frozen=True)


LONGEST_TRAINING_H = 24 * 28
"""Hours of the longest job: SageMaker's own limit, far below the year that Step Functions allows."""
