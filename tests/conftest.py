"""What holds for every test."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# CloudFormation's validator takes longer to start than the app to synthesise; cfn-lint looks at the templates here. Said before
# any test imports aws_cdk, whose engine reads it once.
os.environ.setdefault("CDK_VALIDATION", "false")

# A shell script ignores SIGINT in what it starts in the background, and so would every process of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hypothesis fails an example that takes longer than 200 ms, and examples that it draws slowly; a busy machine does both.
settings.register_profile("at any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("at any speed")


HERE = Path(__file__).parent
TOOLS = (HERE / "benchmarks", HERE / "fakes", HERE / "rehearsal" / "test_slow_link.py")
"""Tests whose subject is no part of the product."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.path.is_relative_to(place) for place in TOOLS):
            item.add_marker(pytest.mark.at_length)


def pytest_collection_finish() -> None:
    """What is imported, and all tests, are never garbage: looking through them again and again took a tenth of the time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Without a last look through the million objects of the local AWS, which takes Python seconds."""
    gc.freeze()
