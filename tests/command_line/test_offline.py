"""A request and its code are checked without AWS in the words that Admit has for the same mistakes, for `check` and for rehearsals."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacks.settings import BLOCK, Settings
from tests.archives import tarred
from tools.refusals.jobs import LEAST
from tools.synthesis import CONTEXT
from trainyard.checking import FileFindings, examine_job
from trainyard.settings import NO_ACCOUNT

SETTINGS = Settings.parse(CONTEXT[BLOCK])
REQUEST = {**LEAST, "code": "s3://trainyard-home-111122223333-eu-central-1/uploads/a.zip"}
OTHER = "222233334444.dkr.ecr.eu-central-1.amazonaws.com/other/images:v1"


def problems(archive: Path | None = None, **fields: object) -> list[str]:
    """Of the smallest request with these fields, whose code is this archive."""
    return examine_job({**REQUEST, **fields}, SETTINGS, archive=archive, shown="my-code").problems


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """An archive of train.py."""
    return write(tmp_path, ("train.py", ""))


def write(folder: Path, *files: tuple[str, str]) -> Path:
    path = folder / "code.tar.gz"
    path.write_bytes(tarred(*files))
    return path


def examine_image(image: str, account: str = "") -> FileFindings:
    return examine_job({"image": image, "instance_types": ["g5.xlarge"]}, SETTINGS, account=account)


def test_a_good_request_has_no_problem(packed: Path) -> None:
    assert problems(packed, region="eu-central-1") == []


def test_what_is_no_request_is_refused() -> None:
    assert examine_job({}, SETTINGS).problems


def test_a_region_in_which_the_deployment_does_not_train_is_named_with_those_where_it_does() -> None:
    (line,) = problems(regions=["eu-central-1", "us-east-1"])
    assert line.startswith("regions: the deployment does not train in us-east-1; allowed: eu-central-1 ")


def test_every_region_will_do_is_refused_in_none() -> None:
    assert problems(regions="auto") == []


def test_a_file_that_the_code_does_not_have_is_named_with_the_one_that_is_near(packed: Path) -> None:
    (line,) = problems(packed, command=["python", "trian.py"])
    assert line.startswith("command: runs trian.py, which is not in my-code (did you mean train.py?); allowed: ")


def test_code_without_a_name_of_its_own_is_called_by_the_address_of_its_upload(packed: Path) -> None:
    (line,) = examine_job({**REQUEST, "command": ["python", "b.py"]}, SETTINGS, archive=packed).problems
    assert "which is not in s3://trainyard-home-111122223333-eu-central-1/uploads/code.tar.gz;" in line


def test_a_program_without_the_execution_bit_is_refused(tmp_path: Path) -> None:
    (line,) = problems(write(tmp_path, ("run.sh", "#!/bin/sh\n")), command=["./run.sh"])
    assert "runs ./run.sh of my-code, which is not executable; allowed: " in line


def test_requirements_that_pip_cannot_read_are_refused(tmp_path: Path) -> None:
    (line,) = problems(write(tmp_path, ("train.py", ""), ("requirements.txt", "numpy=1.26.4=py311_0\n")))
    assert "which only conda reads" in line


def test_requirements_mean_nothing_beside_an_image(tmp_path: Path) -> None:
    code = write(tmp_path, ("train.py", ""), ("requirements.txt", "numpy=1.26.4=py311_0\n"))
    assert problems(code, image="images:v1") == []


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    found = problems(write(tmp_path, ("a.py", "")), nodes="2", region="us-east-1", wibble=1)
    assert [line.split(":")[0] for line in found] == ["nodes", "wibble", "region", "command"]


@pytest.mark.parametrize("image", ["images:v1", "pytorch-training:2.8.0-gpu-py312", f"images@sha256:{'0' * 64}"])
@pytest.mark.parametrize("account", ["", "111122223333"])
def test_an_image_is_judged_whether_the_account_is_known_or_not(image: str, account: str) -> None:
    assert examine_image(image, account).refusal == ""


def test_the_digits_of_an_account_that_is_not_known_are_not_shown() -> None:
    refusal = examine_image(OTHER).refusal
    assert "image: " in refusal
    assert "allowed: registries of <number of the account>, " in refusal
    assert NO_ACCOUNT not in refusal


def test_an_account_that_is_known_counts_whatever_the_request_names() -> None:
    """A rehearsal has one account, in which code of another one cannot be read."""
    assert examine_job(REQUEST, SETTINGS).refusal == ""
    (line,) = examine_job(REQUEST, SETTINGS, account="123456789012").problems
    assert "is not in a bucket that jobs may read" in line
    assert "trainyard-home-123456789012-eu-central-1" in line
