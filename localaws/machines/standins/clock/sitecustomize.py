"""Gives the Python of a machine the wrong clock of a fault: `time.time()` is off by LOCAL_AWS_SKEW_S seconds."""

from __future__ import annotations

import os
import time

_skew = float(os.environ["LOCAL_AWS_SKEW_S"])
_time = time.time


def _skewed() -> float:
    return _time() + _skew


time.time = _skewed
