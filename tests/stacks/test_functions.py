"""Each function has the time, the memory and the libraries that its work needs, and writes to a log of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.synth import every, resources
from tools.synthesis import Synthesised

HALF, WHOLE_CPU, FETCHES = 512, 1769, 2048
"""Megabytes: for calls to AWS; for a whole processor; for a child beside it that fetches code from git."""
NEEDS: dict[str, tuple[int, int]] = {
    "admission": (180, 1024),  # three quarters are for the child that fetches code
    "artifact_check": (300, HALF),
    "attendant": (60, HALF),
    "branch_watch": (600, FETCHES),
    "catalogue_schema": (600, HALF),
    "cleanup": (120, HALF),
    "cluster_api": (90, HALF),
    "default_group": (120, HALF),
    "drain": (300, HALF),
    "grid_cleanup": (900, WHOLE_CPU),
    "grid_collect": (900, WHOLE_CPU),
    "image_build": (600, FETCHES),
    "keeper": (900, WHOLE_CPU),
    "launcher": (300, HALF),
    "own_images": (60, HALF),
    "page_writer": (300, WHOLE_CPU),
    "planner": (900, WHOLE_CPU),
    "reaper": (300, WHOLE_CPU),
    "region_check": (120, HALF),
    "search": (900, WHOLE_CPU),
    "search_cleanup": (900, WHOLE_CPU),
    "service_roles": (120, HALF),
    "starter": (120, FETCHES),
    "terminator": (120, HALF),
    "zone_lookup": (120, HALF),
}
"""Package to seconds and megabytes."""
OPTUNA = {"search", "search_cleanup"}
"""Packages that import it."""


@pytest.fixture(scope="module")
def functions(complete: Synthesised, complying: Synthesised) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Package to the template of its stack, and the function's properties."""
    return {
        one["Handler"].partition(".")[0]: (template, one)
        for deployment in (complying, complete)
        for template in deployment.stacks.values()
        for one in resources(template, "AWS::Lambda::Function").values()
    }


def test_no_function_is_left_out(functions: dict[str, Any]) -> None:
    assert functions.keys() == NEEDS.keys()


@pytest.mark.parametrize("package", NEEDS)
def test_a_function_has_the_time_and_the_memory_that_its_work_needs(functions: dict[str, Any], package: str) -> None:
    _, function = functions[package]
    assert (function["Timeout"], function["MemorySize"]) == NEEDS[package]


def test_every_function_has_the_libraries_of_its_own_stack_and_searches_have_further_ones(
    functions: dict[str, Any],
) -> None:
    for package, (template, function) in functions.items():
        layers = [template["Resources"][one["Ref"]] for one in function["Layers"]]
        descriptions = [one["Properties"]["Description"] for one in layers]
        assert [one.partition(",")[0] for one in descriptions[:1]] == ["Pinned boto3"], package
        assert descriptions[1:] == (["Pinned Optuna and NumPy"] if package in OPTUNA else []), package


def test_libraries_are_of_the_python_and_the_processor_of_the_functions(complete: Synthesised) -> None:
    made = {
        (*one["CompatibleRuntimes"], *one["CompatibleArchitectures"])
        for _, one in every(complete, "AWS::Lambda::LayerVersion")
    }
    used = {(one["Runtime"], *one["Architectures"]) for _, one in every(complete, "AWS::Lambda::Function")}
    assert made == used


def test_every_function_writes_to_a_log_of_its_own(functions: dict[str, Any]) -> None:
    logs = [function["LoggingConfig"]["LogGroup"]["Ref"] for _, function in functions.values()]
    assert len(set(logs)) == len(functions)
    for package, (template, function) in functions.items():
        group = template["Resources"][function["LoggingConfig"]["LogGroup"]["Ref"]]
        assert group["Type"] == "AWS::Logs::LogGroup", package
