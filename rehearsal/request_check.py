"""Checks a request before anything is deployed, as `trainyard check` does, with the settings of cdk.json and the rehearsal's account.

A process of its own does it: the settings import the CDK, which starts a Node.js that an interrupt would end with its own traceback.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rehearsal.fault_check import RequestFacts

if TYPE_CHECKING:
    from stacks.settings import Settings

ROOT = Path(__file__).parent.parent
UPLOADED = "s3://home/uploads/"
"""Stands for the address of what is uploaded once there is a bucket."""


class CannotCheck(Exception):
    """The process that checks has failed; the message is its last line."""


def examine_request(
    request: Mapping[str, Any], code: Path | None, archive: bytes | None
) -> tuple[list[str], RequestFacts]:
    """Returns a line for every problem of a job that needs no account to be found, and what decides on its faults. `archive` is the folder
    `code`, packed."""
    if archive is None:
        return _read_answer(_ask("job", request))
    with TemporaryDirectory() as folder:
        file = Path(folder, "code.tar.gz")
        file.write_bytes(archive)
        return _read_answer(_ask("job", request, str(code), str(file)))


def _read_answer(answer: Mapping[str, Any]) -> tuple[list[str], RequestFacts]:
    facts = RequestFacts(**answer["facts"])
    return answer["problems"], replace(facts, markets=tuple(facts.markets))


def list_grid_problems(request: Mapping[str, Any], manifest: str) -> list[str]:
    """Returns the same for the input of a grid, whose manifest will have that name; of its lines, the account has to be asked."""
    return list(_ask("grid", {**request, "manifest": f"{UPLOADED}{manifest}"})["problems"])


def list_search_problems(request: Mapping[str, Any]) -> list[str]:
    """Returns the same for the input of a search."""
    return list(_ask("search", request)["problems"])


def _ask(kind: str, request: Mapping[str, Any], *code: str) -> dict[str, Any]:
    """Has the other process check; returns its `problems` and, of a job, `facts`. An interrupt ends it. Raises CannotCheck."""
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
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(kind: str, request: Mapping[str, Any], code: str = "", archive: str = "") -> dict[str, Any]:
    """Does the work in the other process. `archive` is the file of the folder `code`, packed; both are empty where there is none."""
    from rehearsal.deployment import ACCOUNT, context
    from searches.request import list_problems
    from stacks.settings import BLOCK, BadSettings, Settings
    from trainyard.checking import examine_grid, examine_job

    if kind == "search":
        return {"problems": list_problems(request)}  # its yard has the regions that the template names
    try:
        settings = Settings.parse(context(1.0)[BLOCK])
    except BadSettings as problem:
        return {"problems": str(problem).splitlines(), "facts": asdict(RequestFacts())}
    if kind == "grid":
        return {"problems": examine_grid(request, settings).problems}
    packed = Path(archive) if archive else None
    found = examine_job(request, settings, archive=packed, shown=code, account=ACCOUNT)
    return {"problems": found.problems, "facts": asdict(_read_facts(request, settings))}


def _read_facts(request: Mapping[str, Any], settings: Settings) -> RequestFacts:
    from job_requests.reading import read

    found, _ = read(request, settings.limits, settings.rules)
    markets = [found.market, *(one.market for one in found.roles or () if one.market is not None)]
    return RequestFacts(
        nodes=found.nodes,
        markets=tuple(one.value for one in markets),
        health=found.health.value,
        reserved=found.reservation is not None,
        checkpoint_minutes=found.checkpoint_minutes,
    )


if __name__ == "__main__":
    print(json.dumps(check(sys.argv[1], json.load(sys.stdin), *sys.argv[2:])))
