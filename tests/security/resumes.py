"""What a job may read that begins with another's checkpoint, and what it may not: rows of the tables in test_rights.py."""

from __future__ import annotations

from contract import keys, sessions
from contract.keys import BytesPrefix, CommitKind
from tests.security.asking import BYTES, EXECUTIONS, HOME, JOB_ROLE, STATES, Ask
from tests.security.jobs import AWAY, BEGINS, DIGEST, MAY, WITH_JOB, of

EARLIER = BytesPrefix("vgg")
RESUMED = {f"aws:PrincipalTag/{sessions.SOURCE_TAG}": "vgg"}
"""Of a session of a job that begins with a checkpoint of the job `vgg`."""
SOURCE = {f"aws:RequestTag/{sessions.SOURCE_TAG}": "vgg", "aws:TagKeys": [sessions.TAG, sessions.SOURCE_TAG]}
WITH_SOURCE: dict[str, object] = WITH_JOB | SOURCE
CLOSED = f"{BYTES}/{EARLIER.closed(1, 5)}"
BEGAN_WITH: list[tuple[str, str, dict[str, object]]] = [
    ("s3:GetObject", f"{AWAY}/{EARLIER.checkpoint(0, DIGEST, 'a/b.pt')}", {}),
    ("s3:GetObject", f"{BYTES}/{EARLIER.pack(0, DIGEST)}", {}),
    ("s3:GetObject", CLOSED, {}),
    ("s3:GetObject", f"{BYTES}/{EARLIER.part(1, 5, 0)}", {}),
    ("s3:ListBucket", BYTES, {"s3:prefix": EARLIER.commits(CommitKind.CHECKPOINTS)}),
]
CHECKPOINTS = (f"/{keys.JOBS}vgg/checkpoints/", f"/{keys.JOBS}vgg/commits/checkpoints/")


def _reads_checkpoints(action: str, resource: str, given: dict[str, object]) -> bool:
    listed = str(given.get("s3:prefix", "")).startswith(EARLIER.commits(CommitKind.CHECKPOINTS))
    return (action == "s3:GetObject" and any(one in resource for one in CHECKPOINTS)) or (
        action == "s3:ListBucket" and listed
    )


ALLOWED = [
    *(Ask("Job", action, one, given | RESUMED) for action, one, given in BEGAN_WITH),
    *(Ask("Job", action, one, given | RESUMED) for action, one, given in MAY),
    *(Ask("Attendant", begins, JOB_ROLE, WITH_SOURCE) for begins in BEGINS),
    Ask("Admission", "s3:GetObject", CLOSED),
    Ask("Admission", "s3:ListBucket", BYTES),
    Ask("Admission", "states:DescribeExecution", f"{EXECUTIONS}:trainyard-train:vgg"),
]
DENIED = [
    # Without the tag, or with that of a job of nearly the same name.
    *(Ask("Job", *one) for one in BEGAN_WITH),
    *(
        Ask("Job", action, one, given | {f"aws:PrincipalTag/{sessions.SOURCE_TAG}": near})
        for near in ("vg", "vgg2", "VGG")
        for action, one, given in BEGAN_WITH
    ),
    # It reads checkpoints, and changes nothing; code, environment, logs and all else stay closed.
    *(
        Ask("Job", action, one, given | RESUMED)
        for action, one, given in of("vgg")
        if not _reads_checkpoints(action, one, given)
    ),
    Ask("Job", "s3:GetObject", f"{BYTES}/{EARLIER.artifact(0, 'model.pt')}", RESUMED),
    Ask("Job", "s3:GetObject", f"{BYTES}/{EARLIER.commit(CommitKind.ARTIFACTS, 1, 5, 0)}", RESUMED),
    Ask("Job", "s3:ListBucket", BYTES, RESUMED | {"s3:prefix": "jobs/vgg/"}),
    Ask("Job", "s3:ListBucket", BYTES, RESUMED | {"s3:prefix": "jobs/vgg/checkpoints/"}),
    Ask("Job", "s3:ListBucket", HOME, RESUMED | {"s3:prefix": EARLIER.commits(CommitKind.CHECKPOINTS)}),
    Ask("Node", "s3:GetObject", CLOSED, RESUMED),
    # No session without a job of its own, and none that nodes begin.
    *(Ask("Attendant", begins, JOB_ROLE, SOURCE) for begins in BEGINS),
    *(Ask(who, "sts:AssumeRole", JOB_ROLE, WITH_SOURCE) for who in ("Node", "Job", "Admission", "Training")),
    # Admit finds checkpoints, and reads none.
    Ask("Admission", "s3:GetObject", f"{BYTES}/{EARLIER.checkpoint(0, DIGEST, 'a/b.pt')}"),
    Ask("Admission", "s3:GetObject", f"{BYTES}/{EARLIER.part(1, 5, 0)}"),
    Ask("Admission", "s3:PutObject", CLOSED),
    Ask("Admission", "s3:DeleteObject", CLOSED),
    Ask("Admission", "states:DescribeExecution", f"{EXECUTIONS}:other-train:vgg"),
    Ask("Admission", "states:StopExecution", f"{EXECUTIONS}:trainyard-train:vgg"),
    Ask("Admission", "states:StartExecution", f"{STATES}:trainyard-train"),
]
