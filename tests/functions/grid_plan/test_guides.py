"""What the guides say of lines and their backends, Plan's reader holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grid_plan.cluster_lines import OF_THE_INPUT
from grid_plan.job_columns import JOB_ONLY
from tests.functions.grid_plan.account import Account
from tests.functions.grid_plan.backends import LINE, cluster_account, planned, refused
from tools.refusals.grids.yard import BUCKET

GUIDES = Path(__file__).parents[3] / "docs" / "guides"
CODE = f"s3://{BUCKET}/uploads/a.tar.gz"
EC2 = {"backend": "ec2", "code": CODE, "command": ["python", "t.py"], "instance_types": ["g5.xlarge"], "max_hours": 1}
COMMIT = {"git": "https://github.com/owner/repository.git", "ref": "0" * 40}
MOUNTS = [{"from": "efs:home", "at": "/data"}]
ROLES = [{"name": "chief"}, {"name": "ps", "ends": "served"}]
TAGS = {f"key{number}": "value" for number in range(17)}
CLUSTERS_ONLY = "is a field of jobs on clusters of our own; allowed: with the backend ec2, or left out"
SAYS: list[tuple[str, str, dict[str, Any], str]] = [
    ("mounts", 'with `"backend": "ec2"` has `mounts` as a job has', {**EC2, "mounts": MOUNTS}, ""),
    ("mounts", "of SageMaker or on Kubernetes has none", {"mounts": MOUNTS}, f"mounts: {CLUSTERS_ONLY}"),
    ("mounts", "of SageMaker or on Kubernetes has none", {**LINE, "mounts": MOUNTS}, f"mounts: {CLUSTERS_ONLY}"),
    ("code", 'with `"backend": "ec2"` takes a commit too', {**EC2, "code": COMMIT}, ""),
    ("code", "an archive alone", {"code": COMMIT, "program": "t.py"}, "code: an object is not a string"),
    ("code", "an archive alone", {**LINE, "code": COMMIT}, "code: an object is not a string"),
    ("grid", "also a `.tar`, a `.zip` or a commit", {**EC2, "code": CODE.replace(".tar.gz", ".zip")}, ""),
    ("grid", "also a `.tar`, a `.zip` or a commit", {**EC2, "code": CODE.replace(".tar.gz", ".tar")}, ""),
    (
        "grid",
        "in the uploads or in a data bucket, `.tar.gz` or `.tgz`",
        {"code": f"s3://{BUCKET}/uploads/a.zip", "program": "t.py"},
        "code: ",
    ),
    ("jobs", "Lines of SageMaker and on Kubernetes have no presets", {"preset": "a"}, f"preset: {CLUSTERS_ONLY}"),
    (
        "jobs",
        "Lines of SageMaker and on Kubernetes have no presets",
        {**LINE, "preset": "a"},
        f"preset: {CLUSTERS_ONLY}",
    ),
    ("messages", 'A line with `"backend": "ec2"` may have `notify`', {**EC2, "notify": ["done"]}, ""),
    ("messages", "other lines have none", {"notify": ["done"]}, f"notify: {CLUSTERS_ONLY}"),
    (
        "workbench",
        "No line of a grid is a bench",
        {**EC2, "workbench": {}},
        "workbench: means nothing with the backend ec2",
    ),
    ("workbench", "No line of a grid is a bench", {"workbench": {}}, "workbench: means nothing in a line of a grid"),
    (
        "landing-zones",
        '`"backend": "ec2"` 16 of its own',
        {**EC2, "tags": TAGS},
        "tags: has 17 entries; allowed: an object of up to 16",
    ),
    ("landing-zones", "A line of SageMaker may then have 45", {"tags": TAGS}, ""),
    (
        "roles",
        "have no place beside roles",
        {**EC2, "roles": ROLES, "processes_per_node": 2},
        "processes_per_node: the request has roles",
    ),
    (
        "roles",
        "have no place beside roles",
        {**EC2, "roles": ROLES, "health": "deep"},
        "health: deep measures the network",
    ),
    (
        "kubernetes",
        "| `market` | `on-demand` |",
        {**LINE, "market": "spot"},
        "market: spot means nothing with the backend kubernetes",
    ),
    (
        "kubernetes",
        "| `mode` | `File` |",
        {**LINE, "mode": "Pipe"},
        "mode: Pipe means nothing with the backend kubernetes",
    ),
    (
        "kubernetes",
        "`encrypt_traffic`, `content_type` of a channel | cannot be |",
        {**LINE, "encrypt_traffic": True},
        "encrypt_traffic: means nothing",
    ),
]
"""Page, words of it, a line, and how it is refused; empty for one that is planned."""


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """The account with a cluster, and types of EC2 in the home region."""
    with cluster_account(monkeypatch) as made:
        yield made


@pytest.mark.parametrize(("page", "words", "line", "said"), SAYS, ids=[f"{one[0]}-{n}" for n, one in enumerate(SAYS)])
def test_what_a_guide_says_of_a_line_is_what_the_reader_does(
    page: str,
    words: str,
    line: dict[str, Any],
    said: str,
    there: Account,
) -> None:
    assert words in (GUIDES / f"{page}.md").read_text()
    if not said:
        assert len(planned(there, line)) == 1
        return
    assert [one for one in refused(there, line) if said in one] != []


def test_no_guide_says_that_lines_lack_a_field_that_those_on_clusters_have() -> None:
    lacks = re.compile(r"\b(?:lines?|grids?)\b[^:;|]{0,60}?\b(?:has|have|takes?|with) no `(\w+)`", re.IGNORECASE)
    found = [
        (guide.name, sentence[0])
        for guide in sorted(GUIDES.glob("*.md"))
        for sentence in lacks.finditer(guide.read_text())
        if sentence[1] in {*JOB_ONLY} - {*OF_THE_INPUT}
        and not {"SageMaker", "Kubernetes"} & set(re.findall(r"\w+", sentence[0]))
    ]
    assert found == []
