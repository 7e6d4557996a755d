"""Checks a request as far as it can be checked without AWS: its fields, its region, and what is in its code."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import IO

from contract.limits import Limits
from contract.request_rules import NO_RULES, RequestRules
from job_requests.offered import list_forbidden, refuse_region
from job_requests.reading import read
from job_requests.request import JobRequest
from job_requests.roles import judge_parts
from refusals.archive import Listing, listing
from refusals.requirements import requirements_problems
from refusals.script import archive_problems, wanted_files

UNCHECKED = (
    "instance types, quotas, prices, images, secrets, file systems, and what lies in S3: only an account knows them"
)
"""What remains for Admit, in words for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCode:
    """An archive of code that is not uploaded yet."""

    shown: str
    """What a refusal calls it."""
    ending: str
    """How the name of such an archive ends, as in `.tar.gz`."""
    open: Callable[[], IO[bytes]]


def list_problems(
    raw: object,
    limits: Limits,
    regions: Collection[str] = (),
    code: LocalCode | None = None,
    rules: RequestRules = NO_RULES,
) -> list[str]:
    """Returns a line for every problem that Admit would find with the request, in Admit's own words.

    `regions` are those in which the deployment trains; none where they are not known. `code` takes the place of the request's.
    """
    request, problems = read(raw, limits, rules)
    return [
        *problems,
        *judge_parts(request, lambda part: list_forbidden(part.instance_types, limits).values()),
        *_list_region_problems(request, regions),
        *(judge_parts(request, lambda part: _list_code_problems(part, code)) if code else []),
    ]


def _list_region_problems(request: JobRequest, regions: Collection[str]) -> list[str]:
    named = request.regions or ([request.region] if request.region else [])
    return [refuse_region(request.region_field, one, regions) for one in named if regions and one not in regions]


def _list_code_problems(request: JobRequest, code: LocalCode) -> list[str]:
    with code.open() as file:
        found: Listing = listing(file, code.ending, lambda: False, wanted_files(request.launched_words))
    return [
        *archive_problems(code.shown, request.launched_words, found),
        *(requirements_problems(code.shown, found) if request.image is None else []),
    ]
