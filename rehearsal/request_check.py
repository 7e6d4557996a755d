"""Checks a job's request before anything is deployed, by the functions that Admit reads it with, and the settings of cdk.json."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from rehearsal.deployment import context

ROOT = Path(__file__).parent.parent
UPLOADED = "s3://home/uploads/code.tar.gz"
"""Stands for the address of code that is uploaded once there is a bucket."""


def list_request_problems(request: Mapping[str, Any], code: Path | None, packed: bytes | None) -> list[str]:
    """Returns a line for every problem that needs no account to be found. `packed` is the archive of the folder `code`."""
    _find_functions()
    from job_requests.checking import LocalCode, list_problems
    from stacks.settings import BLOCK, BadSettings, Settings

    try:
        settings = Settings.parse(context(1.0)[BLOCK])
    except BadSettings as problem:
        return str(problem).splitlines()
    local = None
    if packed is not None:
        local = LocalCode(shown=str(code), ending=".tar.gz", open=lambda: BytesIO(packed))
        request = {**request, "code": UPLOADED}
    return list_problems(request, settings.limits, settings.training, local)


def _find_functions() -> None:
    """Lets this process import the rooms of `lambda/`, which is a source root and no package."""
    root = str(ROOT / "lambda")
    if root not in sys.path:
        sys.path.append(root)
