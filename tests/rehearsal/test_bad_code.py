"""Code that cannot be trusted or installed, and text that would do harm if anything executed it, on real nodes' agents."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from contract import keys, names, tags
from localaws.testing.waiting import HANG_S
from rehearsal.yard import StartedJob, Yard
from tests.archives import header, link, tarred
from tests.rehearsal.jobs import HAPPY, ONE, changes, failed, instances, left, path, stored, succeeded

pytestmark = [pytest.mark.rehearsal, pytest.mark.turn("begins")]
TELLS = """
import json, os, sys
told = {
    "arguments": sys.argv[1:],
    "environment": {name: os.environ[name] for name in ("ODD", "SECRET", "EMPTY")},
    "files": sorted(os.listdir(".")),
}
with open(os.path.join(os.environ["ARTIFACTS_DIR"], "told.json"), "w") as sink:
    json.dump(told, sink)
"""
OWNER = "עדה Lovelace+a=b:c/d@example.com"
ODD_FILE = "$(id) `id` 'a\"b {% $x %} \u202ertl"


TRAIN = ("train.py", TELLS)
HUGE = {"GNU.sparse.size": str(10**12), "GNU.sparse.numblocks": "0", "GNU.sparse.map": "0,0"}
BAD: dict[str, tuple[bytes, str]] = {
    "climbing": (
        tarred(TRAIN, link("a/b/up", ".."), link("a/b/evil", "up/../..")),
        "the code archive has the entry 'a/b/evil', a link to 'up/../..', out of its folder",
    ),
    "uninstallable": (
        tarred(TRAIN, ("requirements.txt", "file:///nowhere/no_such_package-1.0-py3-none-any.whl\n")),
        "requirements.txt cannot be installed",
    ),
}
"""Name of the job to its archive and what its cause has to say."""
REFUSED: dict[str, tuple[bytes, str]] = {
    "escaping": (tarred(TRAIN, ("../evil", "x")), "has the entry '../evil', which points out of its folder"),
    "linking-out": (tarred(TRAIN, link("evil", "/etc")), "has the entry 'evil', a link to '/etc', out of its folder"),
    "piping": (
        tarred(TRAIN, header("pipe", type=tarfile.FIFOTYPE)),
        "has the entry 'pipe', which is neither a file nor a folder nor a link",
    ),
    "linking": (
        tarred(TRAIN, link("evil", "absent", hard=True)),
        "has the entry 'evil', a hard link to 'absent', which is not a file in it",
    ),
    "bomb": (tarred(TRAIN, header("bomb", pax_headers=HUGE)), "with 'bomb' it would take 1,000,000,000,"),
    "saved-on-windows": (tarred(("train.py", TELLS.encode("utf-16"))), "which is in UTF-16"),
    "exported-by-conda": (tarred(TRAIN, ("requirements.txt", "numpy=1.26.4=py311_0\n")), "which only conda reads"),
}
"""The same of archives that Admit refuses."""


@pytest.fixture(scope="module")
def mark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that is made only where something executes the odd text."""
    return tmp_path_factory.mktemp("odd") / "executed"


@pytest.fixture(scope="module")
def odd(mark: Path) -> str:
    return f"a'b\"c $HOME `touch {mark}` $(touch {mark}) ; touch {mark} \n{{% $states.input %}} \u202ertl é \U0001f600"


@pytest.fixture(scope="module")
def jobs(yard: Yard, odd: str, unattended: dict[str, StartedJob]) -> dict[str, StartedJob]:  # noqa: ARG001  (they begin here)
    """All started at once; each needs one node."""
    s3, home = yard.client("s3"), yard.places.home
    started = {}
    for name, (body, _) in (BAD | REFUSED).items():
        s3.put_object(Bucket=home, Key=f"uploads/{name}.tar.gz", Body=body)
        request = {**ONE, "code": f"s3://{home}/uploads/{name}.tar.gz", "command": ["python", "train.py"]}
        started[name] = yard.start(request, name)
    key = f"uploads/{odd.replace(chr(10), ' ')}?#%2F+.tar.gz"
    s3.put_object(Bucket=home, Key=key, Body=tarred(TRAIN, (ODD_FILE, "")))
    secret = yard.client("secretsmanager").create_secret(
        Name=f"{names.secret_prefix(yard.context['trainyard']['deployment'])}odd+=.@_-/name", SecretString=odd
    )
    request = {
        **ONE,
        "code": f"s3://{home}/{key}",
        "command": ["python", "train.py", odd, "", "--flag=" + odd],
        "environment": {"ODD": odd, "EMPTY": ""},
        "secrets": {"SECRET": secret["ARN"]},
        "owner": OWNER,
    }
    return {**started, "odd": yard.start(request, "-rf--odd_job")}


@pytest.mark.parametrize("name", BAD)
def test_bad_code_fails_the_job_with_its_reason(jobs: dict[str, StartedJob], name: str) -> None:
    assert BAD[name][1] in failed(jobs[name], "TrainingFailed")
    assert jobs[name].states()[-3:] == ["Terminate", "Decide", "Failed"]
    assert jobs[name].attempt() == 1
    assert left(jobs[name]) == []


@pytest.mark.parametrize("name", REFUSED)
def test_code_that_no_node_would_unpack_or_run_is_refused_before_any_launch(
    jobs: dict[str, StartedJob], name: str
) -> None:
    assert REFUSED[name][1] in failed(jobs[name], "InvalidRequest")
    assert jobs[name].states() == ["Admit", "Failed"]


def test_the_cause_of_requirements_that_cannot_be_installed_has_pips_last_lines(jobs: dict[str, StartedJob]) -> None:
    cause = failed(jobs["uninstallable"], "TrainingFailed")
    assert "ERROR:" in cause
    assert "no_such_package-1.0" in cause


def test_odd_text_in_every_free_field_reaches_the_training_process_unchanged(
    yard: Yard, jobs: dict[str, StartedJob], odd: str
) -> None:
    job = jobs["odd"]
    succeeded(job)
    assert path(job) == HAPPY
    told = json.loads(stored(yard, keys.BytesPrefix(job.name).artifact(0, "told.json"), yard.places.bytes_))
    assert told["arguments"] == [odd, "", "--flag=" + odd]
    assert told["environment"] == {"ODD": odd, "SECRET": odd, "EMPTY": ""}
    assert told["files"] == sorted(["train.py", ODD_FILE])
    owners = [{tag["Key"]: tag["Value"] for tag in one["Tags"]}[tags.OWNER] for one in instances(job)]
    assert owners == [OWNER]


def test_a_job_that_was_admitted_shows_that_the_search_for_changes_finds_some(jobs: dict[str, StartedJob]) -> None:
    jobs["odd"].wait(HANG_S)
    made = {change["call"] for change in changes(jobs["odd"])}
    assert made >= {"s3:PutObject", "s3:CopyObject", "ec2:RunInstances"}


def test_odd_text_was_executed_nowhere(jobs: dict[str, StartedJob], mark: Path) -> None:
    jobs["odd"].wait(HANG_S)
    jobs["odd"].settle()
    assert not mark.exists()
