"""Reads presets at synth as Admit reads requests. No other file of the deployment imports a room of the functions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from contract.limits import Limits
from contract.request_rules import RequestRules
from stacks.parts.assembled import LAMBDA


def list_request_problems(preset: Mapping[str, Any], limits: Limits, rules: RequestRules) -> list[str]:
    """Lists what Admit would say about these fields of any request that has them."""
    if str(LAMBDA) not in sys.path:
        sys.path.append(str(LAMBDA))  # last of all, so that it hides nothing
    from job_requests.reading import list_preset_problems

    return list_preset_problems(preset, limits, rules)
