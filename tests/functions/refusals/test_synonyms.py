"""An unknown field's hint names what the person means, or nothing: a wrong hint costs more than none."""

from __future__ import annotations

import pytest

from image_build.request import ALLOWED as OF_IMAGES
from job_requests.reading import MAY_BE
from refusals.placeholders import find_placeholders
from refusals.synonyms import ELSEWHERE, OF_A_JOB, SYNONYMS, suggest
from searches.request import ALLOWED as OF_SEARCHES

MEANT = {
    "timeout": "max_hours",
    "maxHours": "max_hours",
    "max-cost": "max_cost_usd",
    "env": "environment",
    "gpus": "instance_types or accelerators",
    "spot": "market",
    "instance_type": "instance_types",
    "instance_count": "nodes",
    "disk_gb": "volume_gb",
    "ami": "machine_image",
    "entrypoint": "command",
    "hyperparameters": "command, arguments or environment",
    "nodse": "nodes",
}


@pytest.mark.parametrize("word", MEANT)
def test_a_word_of_other_tools_is_answered_with_ours(word: str) -> None:
    assert suggest(word, MAY_BE) == f" (did you mean {MEANT[word]}?)"


@pytest.mark.parametrize(
    ("word", "field"),
    [
        ("n_trials", "trials"), ("num_samples", "trials"), ("maxTrialCount", "trials"), ("MaxNumberOfTrainingJobs", "trials"),
        ("parallelTrialCount", "parallel"), ("MaxParallelTrainingJobs", "parallel"), ("max_concurrent_trials", "parallel"),
        ("metric", "objective"), ("direction", "objective"), ("param_space", "search"), ("parameters", "search"),
        ("ParameterRanges", "search"), ("algorithm", "sampler"), ("method", "sampler"), ("random_state", "seed"),
        ("points_to_evaluate", "begin_with"), ("WarmStartConfig", "warm_start"), ("TrainingJobDefinition", "template"),
        ("budget", "max_cost_usd"), ("trial", "trials"),
    ],
)  # fmt: skip
def test_a_word_for_a_field_of_a_search_is_answered_with_it(word: str, field: str) -> None:
    assert suggest(word, OF_SEARCHES) == f" (did you mean {field}?)"


@pytest.mark.parametrize(
    "word",
    [
        "wibble",
        "availability_zones",
        "",
        "x" * 1000,
        "\u202eedon",
        "priority",
        "zone",
        "conda",
        "outputs",
        "max_workers",
    ],
)
def test_a_word_that_means_no_field_has_no_hint(word: str) -> None:
    assert suggest(word, MAY_BE) == ""


def test_what_a_job_says_in_no_field_is_named_with_its_place() -> None:
    assert suggest("requirements", MAY_BE) == " (the code's requirements.txt is installed by itself)"
    assert "requirements.txt" not in suggest("requirements", OF_IMAGES)


def test_no_hint_names_a_field_that_the_request_does_not_have() -> None:
    words = {word for words in SYNONYMS.values() for word in words.split()}
    hints = {word: suggest(word, OF_IMAGES).removeprefix(" (did you mean ").removesuffix("?)") for word in words}
    assert {word: hint for word, hint in hints.items() if hint and hint not in OF_IMAGES} == {}


def test_the_table_names_fields_that_there_are_and_no_word_that_is_one() -> None:
    assert {field for field in SYNONYMS if field not in MAY_BE and field not in OF_SEARCHES} == set()
    for fields in (MAY_BE, OF_SEARCHES):
        known = [words for field, words in SYNONYMS.items() if field in fields]
        assert {word for words in known for word in words.split() if word in fields} == set()
    assert {word for word in ELSEWHERE if word in MAY_BE} == set()
    assert set(MAY_BE) >= OF_A_JOB


@pytest.mark.parametrize(
    "given", [None, [], "REPLACE-WITH-ACCOUNT", {}, {"code": "s3://REPLACE/x"}, {"nodes": 2}, {"data": [None, 1, {}]}]
)
def test_what_has_no_placeholder_in_a_field_is_left_alone(given: object) -> None:
    assert find_placeholders(given) == {}


def test_a_placeholder_is_found_wherever_a_field_has_it() -> None:
    given = {"a": ["x", {"b": "s3://REPLACE-WITH-UploadPrefix/y"}], "c": "REPLACE-WITH-Nothing\u202e", "d": 1}
    found = find_placeholders(given)
    assert set(found) == {"a", "c"}
    assert found["a"].endswith(
        "allowed: the output UploadPrefix of the stacks in the place of s3://REPLACE-WITH-UploadPrefix"
    )
    assert "\u202e" not in found["c"]
    assert "; allowed: a name of the deployment" in found["c"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("REPLACE-WITH-your-user-name", "your IAM user name, or the tag owner of your role or session"),
        ("s3://yard-home-REPLACE-WITH-ACCOUNT-eu-central-1/x", "the number of the account"),
    ],
)
def test_a_placeholder_is_all_its_words_and_none_of_a_names(text: str, words: str) -> None:
    placeholder = text.removeprefix("s3://yard-home-").removesuffix("-eu-central-1/x")
    assert find_placeholders({"a": text})["a"].endswith(f"; allowed: {words} in the place of {placeholder}")
