"""Lines on clusters of our own that Admit would refuse: Plan says it of all of them, before the first one starts."""

from __future__ import annotations

import json
from typing import Any

from tools.refusals.grids.row import Row
from tools.refusals.grids.yard import ACCOUNT, HOME

LEAST = {"backend": "ec2", "instance_types": ["g5.xlarge"], "image": "images:v1"}
TRAINING = "eu-central-1, us-east-1"
"""Regions of the example's deployment in which jobs run."""
TRAINS = f"allowed: {TRAINING} (regions with a cidr or a vpc in cdk.json)"
SECRETS = f"arn:aws:secretsmanager:{{}}:{ACCOUNT}:secret:trainyard/yard/..."


def job(**given: Any) -> str:
    """Returns a line that becomes a job."""
    return json.dumps(LEAST | given, ensure_ascii=False) + "\n"


ROWS = (
    Row(
        "jobs in regions where none run",
        job(region="eu-west-9") + job(region="us-west-2"),
        f"line 1: region: the deployment does not train in eu-west-9; {TRAINS}",
        f"line 2: region: the deployment does not train in us-west-2; {TRAINS}",
    ),
    Row(
        "a type that EC2 does not have",
        job(instance_types=["g5.xlrage"]),
        "line 1: instance_types: g5.xlrage does not exist in eu-central-1; allowed: EC2 types that the region has",
    ),
    Row(
        "more processes than a machine has GPUs",
        job(launcher="torchrun", command=["train.py"], processes_per_node=9),
        "line 1: processes_per_node: 9 is too large for g5.xlarge, which has 1 GPU; allowed: auto, or a whole number from 1 to 1",
    ),
    Row(
        "an image that a job's region lacks",
        job(image="images:home", region="us-east-1"),
        f"line 1: image: images:home does not exist in us-east-1 ({ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/yard/images:home); "
        "allowed: repository and tag of an image that exists there",
    ),
    Row(
        "a mount, a secret and a role that a job cannot have",
        job(
            mounts=[{"from": "fsx:none", "at": "/data"}],
            secrets={"TOKEN": f"arn:aws:secretsmanager:{HOME}:{ACCOUNT}:secret:other/token"},
            job_role="none",
        ),
        "line 1: mounts.0.from: fsx:none names no file system in eu-central-1; allowed: efs:home, fsx:corpus, s3files:images "
        "(file_systems in cdk.json)",
        f"line 1: secrets.TOKEN: arn:aws:secretsmanager:{HOME}:{ACCOUNT}:secret:other/token is not a secret that jobs may read; "
        f"allowed: {' or '.join(SECRETS.format(one) for one in TRAINING.split(', '))}",
        "line 1: job_role: none is not a role of this deployment; allowed: datasets (job_roles in cdk.json)",
    ),
    Row(
        "a job's cap that pays for too little",
        job(max_cost_usd=0.01),
        "line 1: max_cost_usd: $0.01 pays for 0.5 min of 1 node of g5.xlarge ($1.26 an hour); allowed: $1.27 or more, which pays for 1 h",
    ),
    Row(
        "a job to resume from that does not exist",
        job(resume_from="spring"),
        "line 1: resume_from: spring is not a job of this deployment; allowed: the name of a job of this deployment that has ended and "
        "has committed a checkpoint",
    ),
)
