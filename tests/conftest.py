"""What holds for every test."""

from __future__ import annotations

import gc
import os

# CloudFormation's validator takes longer to start than the app to synthesise; cfn-lint looks at the templates here. Said before
# any test imports aws_cdk, whose engine reads it once.
os.environ.setdefault("CDK_VALIDATION", "false")


def pytest_unconfigure() -> None:
    """Without a last look through the million objects of the local AWS, which takes Python seconds."""
    gc.freeze()
