"""Gives a node's agent the wrong clock that the rehearsal wants: `time.time()` is off by LOCAL_AWS_SKEW_S seconds."""

from __future__ import annotations

import os
import time

_skew = float(os.environ["LOCAL_AWS_SKEW_S"])
_time = time.time


def _skewed() -> float:
    return _time() + _skew


time.time = _skewed
