"""Who may read and pull images of jobs' containers: rows of test_rights.py."""

from __future__ import annotations

from contract import names
from tests.security.asking import HERE, Ask
from tests.security.images import AWAY, CONTAINERS, OURS_OF_IMAGES, THEIRS_OF_IMAGES
from tests.security.policies import ACCOUNT, REGION

PLATFORM = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/{names.repository('trainyard', names.PLATFORM)}"
READ = ("ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
OTHERS = f"arn:aws:ecr:{REGION}:777788889999:repository/models"
WRITE = (
    "ecr:PutImage",
    "ecr:InitiateLayerUpload",
    "ecr:BatchDeleteImage",
    "ecr:DeleteRepository",
    "ecr:SetRepositoryPolicy",
)
THERE = {"aws:RequestedRegion": AWAY}

ALLOWED = [
    *(
        Ask(who, action, one)
        for who in ("Admission", "Job")
        for action in READ
        for one in (OURS_OF_IMAGES, CONTAINERS + "/x")
    ),
    Ask("Admission", "ecr:DescribeImages", f"{CONTAINERS}/x"),
    Ask("Job", "ecr:GetAuthorizationToken", "*", HERE),
]
DENIED = [
    *(Ask(who, action, one) for who in ("Admission", "Job") for action in READ for one in (THEIRS_OF_IMAGES, OTHERS)),
    *(Ask("Job", action, PLATFORM) for action in READ),
    *(
        Ask(who, action, OURS_OF_IMAGES)
        for who in ("Admission", "Job", "Node", "Attendant", "Launcher")
        for action in WRITE
    ),
    *(Ask(who, action, OURS_OF_IMAGES) for who in ("Node", "Attendant", "Launcher", "Terminator") for action in READ),
    *(Ask("Job", action, OURS_OF_IMAGES.replace(REGION, AWAY), THERE) for action in READ),
    *(Ask(who, "ecr:GetAuthorizationToken", "*", HERE) for who in ("Node", "Admission", "Attendant")),
    Ask("Job", "ecr:DescribeImages", OURS_OF_IMAGES),
    Ask("Job", "ecr:DescribeImages", f"{CONTAINERS}/x"),
    *(Ask("Admission", "ecr:DescribeImages", one) for one in (OURS_OF_IMAGES, OTHERS)),
    Ask("Job", "ecr:ListImages", OURS_OF_IMAGES),
    Ask("Admission", "ecr:ListImages", OURS_OF_IMAGES),
]
