"""Two deployments of one account have no name in common, also where the name of one begins as that of the other."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from contract import names
from stacks.settings import Settings

FIRST = "trainyard"
GIVEN = {"account": "123456789012", "region": "eu-central-1"}


def all_names(deployment: str) -> set[str]:
    """What contract.names makes of a deployment's name: machines, roles, buckets, repositories, log groups."""
    made = set[str]()
    for function in vars(names).values():
        if inspect.isfunction(function) and function.__module__ == names.__name__:
            parameters = inspect.signature(function).parameters
            if next(iter(parameters), "") == "deployment" and set(parameters) <= {"deployment", "name", *GIVEN}:
                made.add(function(deployment, **{key: value for key, value in GIVEN.items() if key in parameters}))
    return made


def is_refused(deployment: str) -> bool:
    wanted: dict[str, Any] = {"deployment": deployment}
    try:
        Settings.model_validate(wanted)
    except ValueError as problem:
        return "deployment is" in str(problem)
    return False


ENDINGS = sorted(
    {
        "-".join(words[:number])
        for name in all_names(FIRST)
        if name.startswith(f"{FIRST}-")
        for words in [name.removeprefix(f"{FIRST}-").split("-")]
        for number in range(1, len(words) + 1)
    }
)
"""What another deployment's name may have behind that of the first, to meet one of its names."""


@pytest.mark.parametrize("ending", ENDINGS)
def test_two_deployments_have_no_name_in_common_or_the_second_is_refused(ending: str) -> None:
    other = f"{FIRST}-{ending}"
    assert is_refused(other) or not all_names(FIRST) & all_names(other)


def test_names_are_found_that_would_meet() -> None:
    assert all_names(FIRST) & all_names(f"{FIRST}-platform")
    assert is_refused(f"{FIRST}-platform")
    assert not is_refused(f"{FIRST}-platforms")
    assert len(ENDINGS) > 10
