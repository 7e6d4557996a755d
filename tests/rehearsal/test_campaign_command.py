"""A rehearsed campaign: what the command line takes, and what it refuses before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rehearsal.campaign_command import arguments, split_statements
from rehearsal.campaign_run import regions

EXAMPLE = Path(__file__).parents[2] / "examples" / "campaign"
GOOD: dict[str, Any] = json.loads((EXAMPLE / "settings.json").read_text())
(NAME,) = GOOD["campaigns"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the example has, for a test to change."""
    for name in ("settings.json", "catalogue.sql"):
        (tmp_path / name).write_text((EXAMPLE / name).read_text())
    return tmp_path


def refusal(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> str:
    with pytest.raises(SystemExit) as refused:
        arguments(["--campaign", str(folder), *more])
    assert refused.value.code == 2
    return capsys.readouterr().err


def with_campaign(**changes: Any) -> dict[str, Any]:
    """The example's settings, whose campaign has these values; None leaves a key out."""
    changed = {**GOOD["campaigns"][NAME], **changes}
    return {**GOOD, "campaigns": {NAME: {key: one for key, one in changed.items() if one is not None}}}


def test_the_example_is_taken_with_its_statements_one_by_one() -> None:
    options = arguments(["--campaign", str(EXAMPLE), "--fault", "database-away:seconds=60"])
    assert options.settings == GOOD
    assert [one.split(" ")[0:3] for one in options.statements] == [
        ["insert", "into", "trainyard.campaigns"],
        ["insert", "into", "trainyard.data_sets"],
    ]
    assert ([one.name for one in options.faults], options.speed) == (["database-away"], 30.0)


def test_home_and_each_further_region_have_a_network_of_their_own() -> None:
    found = regions(arguments(["--campaign", str(EXAMPLE), "--region", "us-west-2", "--region", "us-east-1"]))
    assert [place["region"] for place in found] == ["eu-central-1", "us-east-1", "us-west-2"]
    assert len({place["cidr"] for place in found}) == len(found)


def test_home_named_as_a_further_region_is_one_region() -> None:
    assert len(regions(arguments(["--campaign", str(EXAMPLE), "--region", "eu-central-1"]))) == 1


def test_blank_lines_separate_statements_and_are_none_themselves() -> None:
    assert split_statements("\n\nselect 1\nfrom a\n\n\n\nselect 2\n") == ["select 1\nfrom a", "select 2"]
    assert split_statements("\n\n\n") == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--image", "nowhere"], "--image nowhere: there is no such folder"),
        (["--image", str(EXAMPLE)], "build.json: there is no such file"),
        (["--grid-data", "nowhere"], "--grid-data nowhere: there is no such folder"),
        (["--grid-data", str(EXAMPLE / "settings.json")], "settings.json: is a file; it must be a folder"),
        (["--region", "mars-west-1"], "--region mars-west-1: SageMaker has no such region; there are af-south-1, "),
        (["--limit", "soon"], "--limit soon: must be a number of seconds above 0"),
        (["--speed", "0"], "--speed 0: must be a number above 0"),
        (["--seed", "1.5"], "--seed 1.5: must be a whole number"),
        (["--fault", "database-awake"], "did you mean database-away?"),
        (["--fault", "database-away:seconds=soon"], "seconds is 'soon'"),
        (["--manifest", "m.csv"], "unrecognized arguments: --manifest"),
        (["--camp", "x"], "unrecognized arguments"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused_in_words(
    more: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refusal(capsys, EXAMPLE, *more)


def test_a_campaign_has_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments([])
    assert "the following arguments are required: --campaign" in capsys.readouterr().err


def test_a_folder_that_is_not_there_or_is_a_file_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere: there is no such folder" in refusal(capsys, folder / "nowhere")
    assert "settings.json: is a file; it must be a folder" in refusal(capsys, folder / "settings.json")


@pytest.mark.parametrize("name", ["settings.json", "catalogue.sql"])
def test_a_file_that_the_folder_lacks_is_named(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / name).unlink()
    assert f"{name}: there is no such file" in refusal(capsys, folder)


def test_statements_in_another_encoding_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "catalogue.sql").write_bytes("select 1".encode("utf-16"))
    assert "catalogue.sql: is not a string in UTF-8" in refusal(capsys, folder)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "settings.json: is not JSON: "),
        ("[]", "settings.json: is not a JSON object"),
        (json.dumps({"catalogue": True}), "settings.json has to have one campaign in `campaigns`"),
        (json.dumps({**GOOD, "campaigns": {}}), "has to have one campaign"),
        (json.dumps({**GOOD, "campaigns": [NAME]}), "has to have one campaign"),
        (json.dumps({**GOOD, "campaigns": {**GOOD["campaigns"], "b": {}}}), "has to have one campaign"),
        (json.dumps({**GOOD, "campaigns": {NAME: "all"}}), "has to have prefix, suffix and input, and no bucket"),
        (json.dumps(with_campaign(bucket="data")), "and no bucket"),
        *(
            (json.dumps(with_campaign(**{key: None})), "prefix, suffix and input")
            for key in ("prefix", "suffix", "input")
        ),
        (json.dumps({**GOOD, "catalogue": False}), 'settings.json has to say "catalogue": true'),
        (json.dumps({**GOOD, "catalogue": "true"}), 'settings.json has to say "catalogue": true'),
    ],
)
def test_settings_with_which_no_campaign_can_be_rehearsed_are_refused_in_words(
    text: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "settings.json").write_text(text)
    assert says in refusal(capsys, folder)


def test_all_that_is_wrong_is_said_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "settings.json").write_text(json.dumps({**GOOD, "catalogue": False}))
    found = refusal(capsys, folder, "--speed", "0", "--image", "nowhere", "--region", "mars-1")
    assert all(one in found for one in ("--speed 0", "--image nowhere", "--region mars-1", '"catalogue": true'))
