"""A request is checked without AWS in the words that Admit has for the same mistakes."""

from __future__ import annotations

from io import BytesIO

import pytest

from job_requests.checking import LocalCode, list_problems
from tests.archives import tarred
from tests.builders import LIMITS
from tools.refusals.jobs import LEAST

REGIONS = ("eu-central-1",)


def problems(code: bytes | None = None, **fields: object) -> list[str]:
    """Of the smallest request with these fields, whose code is this archive."""
    local = LocalCode(shown="my-code", ending=".tar.gz", open=lambda: BytesIO(code)) if code is not None else None
    return list_problems({**LEAST, **fields}, LIMITS, REGIONS, local)


def test_a_good_request_has_no_problem() -> None:
    assert problems(tarred(("train.py", "")), region="eu-central-1") == []


@pytest.mark.parametrize("given", [None, [], "x", 1, {}])
def test_what_is_no_request_is_refused(given: object) -> None:
    assert list_problems(given, LIMITS)


def test_a_region_in_which_the_deployment_does_not_train_is_named_with_those_where_it_does() -> None:
    (line,) = problems(regions=["eu-central-1", "us-east-1"])
    assert line.startswith("regions: the deployment does not train in us-east-1; allowed: eu-central-1 ")


def test_where_no_region_is_known_none_is_refused() -> None:
    assert list_problems({**LEAST, "region": "us-east-1"}, LIMITS) == []


def test_every_region_will_do_is_refused_in_none() -> None:
    assert problems(regions="auto") == []


def test_a_file_that_the_code_does_not_have_is_named_with_the_one_that_is_near() -> None:
    (line,) = problems(tarred(("train.py", "")), command=["python", "trian.py"])
    assert line.startswith("command: runs trian.py, which is not in my-code (did you mean train.py?); allowed: ")


def test_a_program_without_the_execution_bit_is_refused() -> None:
    (line,) = problems(tarred(("run.sh", "#!/bin/sh\n")), command=["./run.sh"])
    assert "which is not executable; allowed: " in line


def test_requirements_that_pip_cannot_read_are_refused() -> None:
    (line,) = problems(tarred(("train.py", ""), ("requirements.txt", "numpy=1.26.4=py311_0\n")))
    assert "which only conda reads" in line


def test_requirements_mean_nothing_beside_an_image() -> None:
    code = tarred(("train.py", ""), ("requirements.txt", "numpy=1.26.4=py311_0\n"))
    assert problems(code, image="images:v1") == []


def test_all_mistakes_are_told_at_once() -> None:
    found = problems(tarred(("a.py", "")), nodes="2", region="us-east-1", wibble=1)
    assert [line.split(":")[0] for line in found] == ["nodes", "wibble", "region", "command"]
