"""Checks a request before anything is deployed, as `trainyard check` does, with the settings of cdk.json and the rehearsal's account.

A process of its own does it: the settings import the CDK, which starts a Node.js that an interrupt would end with its own traceback.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parent.parent
UPLOADED = "s3://home/uploads/"
"""Stands for the address of what is uploaded once there is a bucket."""


class CannotCheck(Exception):
    """The process that checks has failed; the message is its last line."""


def list_request_problems(request: Mapping[str, Any], code: Path | None, archive: bytes | None) -> list[str]:
    """Returns a line for every problem of a job that needs no account to be found. `archive` is the folder `code`, packed."""
    if archive is None:
        return _ask("job", request)
    with TemporaryDirectory() as folder:
        file = Path(folder, "code.tar.gz")
        file.write_bytes(archive)
        return _ask("job", request, str(code), str(file))


def list_grid_problems(request: Mapping[str, Any], manifest: str) -> list[str]:
    """Returns the same for the input of a grid, whose manifest will have that name; of its lines, the account has to be asked."""
    return _ask("grid", {**request, "manifest": f"{UPLOADED}{manifest}"})


def list_search_problems(request: Mapping[str, Any]) -> list[str]:
    """Returns the same for the input of a search."""
    return _ask("search", request)


def _ask(kind: str, request: Mapping[str, Any], *code: str) -> list[str]:
    """Has the other process check. An interrupt ends it. Raises CannotCheck."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, kind, *code],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "lambda")))},
        start_new_session=True,
    )
    if done.returncode:
        raise CannotCheck(done.stderr.strip().rpartition("\n")[2] or f"the check ended with {done.returncode}")
    found: list[str] = json.loads(done.stdout)
    return found


def check(kind: str, request: Mapping[str, Any], code: str = "", archive: str = "") -> list[str]:
    """Does the work in the other process. `archive` is the file of the folder `code`, packed; both are empty where there is none."""
    from rehearsal.deployment import ACCOUNT, context
    from searches.request import list_problems
    from stacks.settings import BLOCK, BadSettings, Settings
    from trainyard.checking import examine_grid, examine_job

    if kind == "search":
        return list_problems(request)  # its yard has the regions that the template names
    try:
        settings = Settings.parse(context(1.0)[BLOCK])
    except BadSettings as problem:
        return str(problem).splitlines()
    if kind == "grid":
        return examine_grid(request, settings).problems
    packed = Path(archive) if archive else None
    return examine_job(request, settings, archive=packed, shown=code, account=ACCOUNT).problems


if __name__ == "__main__":
    print(json.dumps(check(sys.argv[1], json.load(sys.stdin), *sys.argv[2:])))
