"""Tags of a request: which the settings want, which they keep, and that none passes for one of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from contract import tags
from contract.request_rules import RequestRules
from contract.tag_forms import MOST_OF_A_REQUEST, MOST_OF_SETTINGS
from job_requests.reading import read
from job_requests.tag_fields import list_required_problems
from tests.builders import LIMITS
from tests.functions.admission.account import ADMITTING, Account, account, refused, start
from tools.refusals.jobs import LEAST

WANTED = RequestRules(tags={"CostCenter": "4711"}, required_tags={"Project": ("apollo", "gemini"), "Stage": ()})
ANY = "1 to 255 letters, digits, spaces and _.:/=+-@, such as 4711 (required_tags in cdk.json)"


@pytest.fixture
def strict() -> Iterator[Account]:
    """An account whose settings require two tags."""
    with account(ADMITTING, WANTED) as opened:
        yield opened


def lines_of(**given: Any) -> list[str]:
    return read({**LEAST, **given}, LIMITS, WANTED)[1]


def test_a_request_without_a_required_tag_is_refused_by_its_name(strict: Account) -> None:
    assert "tags.Project: is missing; allowed: apollo, gemini (required_tags in cdk.json)" in refused(LEAST)
    assert strict.changes == []


def test_every_tag_that_is_missing_has_a_line() -> None:
    assert lines_of() == [
        "tags.Project: is missing; allowed: apollo, gemini (required_tags in cdk.json)",
        f"tags.Stage: is missing; allowed: {ANY}",
    ]


def test_a_value_that_is_not_allowed_is_refused() -> None:
    assert lines_of(tags={"Project": "mercury", "Stage": "x"}) == [
        "tags.Project: mercury is not one of them; allowed: apollo, gemini (required_tags in cdk.json)"
    ]


@pytest.mark.parametrize("key", ["project", "PROJECT", "Project."])
def test_another_key_is_not_the_required_one(key: str) -> None:
    assert any("tags.Project: is missing" in one for one in lines_of(tags={key: "apollo", "Stage": "x"}))


def test_a_request_with_its_tags_is_admitted_and_job_json_has_them(strict: Account) -> None:
    start({**LEAST, "tags": {"Project": "gemini", "Stage": "dev", "Team": "Vision Lab"}})
    job = strict.job("job-1")
    assert job is not None
    assert job.tags == {"Project": "gemini", "Stage": "dev", "Team": "Vision Lab"}


def test_a_preset_may_bring_a_required_tag() -> None:
    rules = RequestRules(presets={"dev": {"tags": {"Stage": "dev"}}}, required_tags={"Stage": ("dev",)})
    assert read({**LEAST, "preset": "dev"}, LIMITS, rules)[1] == []
    assert read({**LEAST, "preset": "dev", "tags": {"Stage": "prod"}}, LIMITS, rules)[1] != []


def test_a_tag_of_the_settings_is_required_of_nobody() -> None:
    rules = RequestRules(tags={"Stage": "dev"}, required_tags={"Stage": ()})
    assert read(LEAST, LIMITS, rules)[1] == []


def test_wrong_tags_are_not_missing_too() -> None:
    (line,) = lines_of(tags={"Project": "a;b"})
    assert line.startswith("tags.Project: a;b is not the value of a tag")


def test_a_request_that_is_none_lacks_no_tag() -> None:
    assert read(None, LIMITS, WANTED)[1] == read(None, LIMITS)[1]


def test_tags_of_a_line_of_sagemaker_are_held_to_the_same() -> None:
    assert list(list_required_problems({"Project": "mercury"}, WANTED)) == [
        f"tags.Stage: is missing; allowed: {ANY}",
        "tags.Project: mercury is not one of them; allowed: apollo, gemini (required_tags in cdk.json)",
    ]


@pytest.mark.parametrize(
    "key", [value for name, value in vars(tags).items() if name.isupper() and isinstance(value, str) and ":" in value]
)
@pytest.mark.parametrize("spelt", [str, str.upper, str.title])
def test_no_tag_of_a_request_passes_for_one_of_ours(key: str, spelt: Any) -> None:
    """By them the reaper, the drain and IAM tell what is ours, whose it is, and until when."""
    given = {"Project": "apollo", "Stage": "x", spelt(key): "i"}
    assert len(lines_of(tags=given)) == 1


def test_there_is_room_for_every_tag_of_a_node() -> None:
    ours = {value for name, value in vars(tags).items() if name.isupper() and isinstance(value, str)}
    ours -= {tags.RESERVED, tags.WORKER_ROLE}
    ours -= {tags.WORKBENCH}  # which no line of a grid is, whose tags are two
    ours -= {tags.FIRST_RANK}  # a request with roles has one tag less
    assert len(ours) + MOST_OF_SETTINGS + MOST_OF_A_REQUEST <= 50
