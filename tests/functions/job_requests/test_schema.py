"""The JSON Schema of a request takes what Admit takes, where fields depend on each other or take more than one type."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from contract.request_rules import RequestRules
from job_requests.reading import read
from job_requests.request import schema
from tests.builders import LIMITS
from tools.refusals.jobs import LEAST

WITHOUT_TYPES = {name: value for name, value in LEAST.items() if name != "instance_types"}

IN_IMAGE = {"image": "images:v1", "instance_types": ["g5.xlarge"]}


def is_valid(request: dict[str, Any]) -> bool:
    # Unchecked: Python does not know the letters of any script (\\p{L}), which the pattern of `owner` has and JSON Schema allows.
    return jsonschema.Draft202012Validator(schema()).is_valid(request)


@pytest.mark.parametrize(
    "request_",
    [
        LEAST,
        {**LEAST, "efa": True},
        {**LEAST, "efa": False},
        {**LEAST, "efa": "auto"},
        {**WITHOUT_TYPES, "accelerators": "RTX PRO Server 6000:8"},
        {**LEAST, "launcher": "none"},
        {**LEAST, "launcher": "torchrun"},
        {**LEAST, "launcher": "mpi", "processes_per_node": "auto"},
        {**LEAST, "launcher": "mpi", "processes_per_node": 1024},
        {**IN_IMAGE, "launcher": "none"},
        {**IN_IMAGE, "launcher": "mpi", "command": ["python", "train.py"]},
    ],
)
def test_a_request_that_admit_reads_fits_the_schema(request_: dict[str, Any]) -> None:
    assert read(request_, LIMITS)[1] == []
    assert is_valid(request_)


@pytest.mark.parametrize(
    "request_",
    [
        WITHOUT_TYPES,
        {**LEAST, "accelerators": "H100:8"},
        {**WITHOUT_TYPES, "accelerators": "H100"},
        {**LEAST, "efa": "true"},
        {**LEAST, "efa": 1},
        {**LEAST, "efa": None},
        {**LEAST, "launcher": "mpirun"},
        {**LEAST, "launcher": None},
        {**LEAST, "processes_per_node": 8},
        {**LEAST, "processes_per_node": "auto"},
        {**LEAST, "launcher": "none", "processes_per_node": 8},
        {**LEAST, "launcher": "mpi", "processes_per_node": 0},
        {**LEAST, "launcher": "mpi", "processes_per_node": 1025},
        {**LEAST, "launcher": "mpi", "processes_per_node": 1.5},
        {**LEAST, "launcher": "mpi", "processes_per_node": "8"},
        {**LEAST, "launcher": "mpi", "processes_per_node": True},
        {**LEAST, "launcher": "mpi", "processes_per_node": None},
        {**IN_IMAGE, "launcher": "torchrun"},
    ],
)
def test_a_request_that_admit_refuses_does_not_fit_the_schema(request_: dict[str, Any]) -> None:
    assert read(request_, LIMITS)[1] != []
    assert not is_valid(request_)


@pytest.mark.parametrize(
    "request_",
    [
        {"preset": "whole"},
        {"preset": "whole", "accelerators": "A10G:1"},
        {"preset": "whole", "processes_per_node": 8, "launcher": "torchrun"},
        {"preset": "whole", "processes_per_node": 8},
        {"preset": "whole", "tags": {"Project": "apollo"}},
        {**LEAST, "preset": None},
    ],
)
def test_a_request_that_a_preset_completes_fits_the_schema(request_: dict[str, Any]) -> None:
    rules = RequestRules(presets={"whole": {**LEAST, "command": ["train.py"], "launcher": "torchrun"}})
    assert read(request_, LIMITS, rules)[1] == []
    assert is_valid(request_)


@pytest.mark.parametrize(
    "request_",
    [
        {**WITHOUT_TYPES, "preset": None},
        {"preset": "whole", "instance_types": ["g5.xlarge"], "accelerators": "A10G:1"},
        {"preset": ["whole"]},
    ],
)
def test_a_request_that_no_preset_completes_does_not_fit_the_schema(request_: dict[str, Any]) -> None:
    assert read(request_, LIMITS, RequestRules(presets={"whole": LEAST}))[1] != []
    assert not is_valid(request_)
