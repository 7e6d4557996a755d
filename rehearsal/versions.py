"""Deploys another version of the product over the one that is deployed, as a checkout of it and `make deploy` do."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rehearsal.deployment import synthesise
from rehearsal.yard import Yard

DURATION = re.compile(r"^    (\w+): float\b", re.MULTILINE)
"""A field of `contract/timing.py`."""


class Versions:
    """This version, which the yard was made with, and the one in another tree."""

    def __init__(self, yard: Yard, other: Path) -> None:
        self._yard = yard
        self._other = yard.work / "other-assembly"
        synthesise(_fit(yard.context, other), self._other, other)

    def deploy_other(self) -> None:
        self._yard.cdk.deploy(self._other)

    def deploy_this(self) -> None:
        self._yard.cdk.deploy(self._yard.assembly)

    def read_code(self, part: str) -> str:
        """Returns the digest of the code of the function whose name has this part."""
        listed = self._yard.client("lambda").get_paginator("list_functions").paginate()
        (found,) = [one for page in listed for one in page["Functions"] if part in one["FunctionName"]]
        return str(found["CodeSha256"])


def _fit(values: Mapping[str, Any], tree: Path) -> dict[str, Any]:
    """Returns the context without the durations that the tree does not have."""
    fitting = copy.deepcopy(dict(values))
    known = set(DURATION.findall((tree / "contract" / "timing.py").read_text()))
    timing = fitting["trainyard"]["timing"]
    fitting["trainyard"]["timing"] = {name: seconds for name, seconds in timing.items() if name in known}
    return fitting
