"""Reads at synth what the functions read later, as they do. No other file of the deployment imports a room of the functions."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from contract.campaigns import Started
from contract.environments import GridEnvironment
from contract.limits import Limits
from contract.request_rules import RequestRules
from stacks.parts.assembled import LAMBDA

NOT_KNOWN = re.compile(r"(template|places\.\d+)\.((channels|checkpoint|code|data|image|secrets)[.:]|\w+: is missing;)")
"""How problems of a search's lines begin that are about names with the account's number in them, and about what is not there."""


def list_request_problems(preset: Mapping[str, Any], limits: Limits, rules: RequestRules) -> list[str]:
    """Lists what Admit would say about these fields of any request that has them."""
    _find_rooms()
    from job_requests.reading import list_preset_problems

    return list_preset_problems(preset, limits, rules)


def list_input_problems(
    given: Mapping[str, Any], limits: Limits, grids: GridEnvironment, rules: RequestRules
) -> list[str]:
    """Lists what Admit, Plan or the Search machine would say about an input, as far as it can be known without AWS and without the account.
    `grids` is what Plan is told."""
    _find_rooms()
    match Started.of_input(given):
        case Started.GRID:
            from grid_plan.request import read as read_grid

            return read_grid(given, grids.limits)[2]
        case Started.SEARCH:
            from searches.request import list_problems
            from searches.template import list_form_problems

            of_lines = list_form_problems(given, grids, rules)
            return [*list_problems(given), *(one for one in of_lines if not NOT_KNOWN.match(one))]
    from job_requests.reading import read as read_job

    return read_job(given, limits, rules)[1]


def list_build_problems(given: Mapping[str, Any]) -> list[str]:
    """Lists what the Build machine would say about a request, as far as it can be known without AWS."""
    _find_rooms()
    from image_build.request import read

    return read(given)[1]


def list_text_problems(block: str, raw: Mapping[str, Any]) -> list[str]:
    """Lists the texts and keys of settings, under the key `block`, that UTF-8 or a process cannot hold, as the functions do."""
    _find_rooms()
    from job_requests.reading import list_unwritable

    return list_unwritable(block, raw)


def _find_rooms() -> None:
    if str(LAMBDA) not in sys.path:
        sys.path.append(str(LAMBDA))  # last of all, so that it hides nothing
