"""The plan that the child reads, made by Plan's own code: a grid of 100 lines of one region, of which one is submitted."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from contract import names
from contract.codec import encode
from contract.environments import ChildEnvironment, GridDefaults, GridEnvironment, GridLimits
from contract.grid import SHARD, Grid, GridPrefix, Line, Manifest
from contract.limits import Limits
from contract.metric_values import write_expression
from contract.timing import Timing
from contract.timings import ChildTiming
from grid_plan.choice import Decision
from grid_plan.columns import DEFAULTS, TrainingSpec
from grid_plan.merging import source
from grid_plan.training_arguments import GridRun, build_arguments
from grid_plan.wanted import Wanted

ACCOUNT, HOME, DEPLOYMENT, GRID = "123456789012", "eu-central-1", "trainyard", "digits-sweep"
REGION, BUCKET = "us-east-1", f"{DEPLOYMENT}-home-{ACCOUNT}-{HOME}"
EXECUTION = f"arn:aws:states:{HOME}:{ACCOUNT}:execution:{DEPLOYMENT}-grid:{GRID}"
STARTED_AT = "2026-01-01T00:00:00.000Z"
LINES, MINE = SHARD, 57
"""A whole object of the plan, and a line in the midst of it."""
TIMING = replace(Timing(), training_watch_s=0.2)
"""A training that is over at the first look, a fifth of a second after its submission, lets the child come to its end."""


def training(index: int) -> TrainingSpec:
    """A line as a sweep makes them."""
    return TrainingSpec.model_validate(
        DEFAULTS
        | {
            "region": REGION,
            "data": [f"s3://my-data-{REGION}/digits/"],
            "image": "images:v1",
            "hyperparameters": {"lr": str(0.001 * (index + 1)), "optimizer": "sgd", "epochs": "20"},
            "environment": {"NCCL_DEBUG": "INFO"},
            "instance_type": "ml.g5.12xlarge",
            "instance_count": 2,
            "volume_gb": 100,
            "max_hours": 8.0,
            "tags": {"cost-centre": "research"},
            "metrics": {"loss": write_expression("loss"), "accuracy": write_expression("accuracy")},
        }
    )


def line(index: int) -> Line:
    one = training(index)
    decision = Decision(
        region=REGION,
        why="named",
        copies={"training": f"s3://my-data-{REGION}/digits/"},
        image=f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/{DEPLOYMENT}/images:v1",
        code="",
        hourly_usd=14.18,
    )
    run = GridRun(grid=GRID, execution=EXECUTION, started_at=STARTED_AT, owner="ann")
    return Line(
        index=index,
        line=index + 1,
        region=REGION,
        why=decision.why,
        slot=index,
        request=build_arguments(Wanted(spec=one, env=_settings()), decision, index, run),
        source=source(one),
        hourly_usd=decision.hourly_usd,
    )


def _settings() -> GridEnvironment:
    return GridEnvironment(
        deployment=DEPLOYMENT,
        bucket=BUCKET,
        table=names.state_table(DEPLOYMENT),
        account=ACCOUNT,
        suffix="amazonaws.com",
        home_region=HOME,
        regions=(HOME, REGION),
        repositories=("images",),
        base_accounts={},
        data_buckets=(f"my-data-{REGION}",),
        training_role=f"arn:aws:iam::{ACCOUNT}:role/{names.training_role(DEPLOYMENT, HOME)}",
        machine=f"arn:aws:states:{HOME}:{ACCOUNT}:stateMachine:{DEPLOYMENT}-grid",
        queue=names.grid_queue(DEPLOYMENT),
        child_image="grid-child-0",
        limits=GridLimits(
            max_lines=10_000,
            max_concurrent=1000,
            submissions_per_second=1.0,
            max_hours=72.0,
            max_instances=16,
            max_volume_gb=2000,
            instance_types=("ml.*",),
        ),
        job_limits=Limits(
            max_nodes=16, max_hours=72.0, recoveries=2, volume_gb=100, max_volume_gb=2000, instance_types=("*",)
        ),
        train_machine=f"arn:aws:states:{HOME}:{ACCOUNT}:stateMachine:{names.machine(DEPLOYMENT)}",
        defaults=GridDefaults(image="", instance_type=""),
    )


def objects() -> dict[str, bytes]:
    """What Plan leaves in the home bucket. Planned an hour ago: the line's slot is past, and nothing is slept for the pace."""
    prefix = GridPrefix(GRID)
    grid = Grid(
        id=GRID,
        deployment=DEPLOYMENT,
        execution=EXECUTION,
        started_at=STARTED_AT,
        owner="ann",
        planned_at=time.time() - 3600,
        manifest=Manifest(bucket=BUCKET, key="uploads/manifest.csv", version="v1", etag='"0"'),
        lines=LINES,
        regions={REGION: LINES},
        pace=1.0,
        cost_at_most_usd=None,
    )
    return {
        f"{BUCKET}/{prefix.description}": encode(grid),
        f"{BUCKET}/{prefix.lines(MINE)}": b"\n".join(encode(line(index)) for index in range(LINES)),
    }


def variables() -> dict[str, str]:
    """Of the child: the job definition's, the array's and Batch's own."""
    environment = ChildEnvironment(
        deployment=DEPLOYMENT,
        bucket=BUCKET,
        home_region=HOME,
        timing=TIMING.of(ChildTiming),
        grid=GRID,
        first=0,
        round=1,
    )
    batch = {"AWS_BATCH_JOB_ARRAY_INDEX": str(MINE), "AWS_BATCH_JOB_ATTEMPT": "1", "AWS_BATCH_JOB_ID": f"job:{MINE}"}
    return environment.write() | batch


def wanted() -> dict[str, Any]:
    """The request that both have to send."""
    return line(MINE).request
