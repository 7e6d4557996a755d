"""Refusals of a job from which another one is to begin."""

from __future__ import annotations

from tools.refusals.jobs.table import Row, Section

ALLOWED = "the name of a job of this deployment that has ended and has committed a checkpoint"
TRAINED, RUNNING, UNSAVED, AWAY, CLOSED = "trained", "running", "unsaved", "away", "closed-off"
"""The deployment has these jobs: one that ended with checkpoints, one that runs, one without a checkpoint, one whose bucket is gone, and
one whose bucket denies access."""

RESUME = Section(
    "resume_from",
    ALLOWED,
    rows=(
        ("a number", 7, "7 is not a string"),
        ("a list of jobs", [TRAINED], "a list is not a string"),
        ("an empty string", "", '"" does not have the right form'),
        ("an address", "s3://yard-home/jobs/trained/", '"s3://yard-home/jobs/trained/" does not have the right form'),
        ("a path with ..", "../trained", '"../trained" does not have the right form'),
        (
            "the ARN of an execution",
            "arn:aws:states:x:1:execution:a:b",
            '"arn:aws:states:x:1:execution:a:b" does not have the right form',
        ),
        Row("its own name", {"resume_from": "job-1"}, "resume_from: job-1 is this job's own name", name="job-1"),
        ("an unknown job", "lost", "lost is not a job of this deployment"),
        ("a job that runs", RUNNING, "running still runs, and replaces its checkpoints"),
        ("a job without a checkpoint", UNSAVED, "unsaved has no committed checkpoint in eu-central-1"),
        (
            "a job whose bucket is gone",
            AWAY,
            "away has no committed checkpoint (the bucket of eu-west-1 cannot be read: there is no such bucket)",
        ),
        (
            "a job whose bucket may not be read",
            CLOSED,
            "closed-off has no committed checkpoint (the bucket of eu-west-1 cannot be read: S3 answers AccessDenied, so the bucket "
            "belongs to another account, or its policy or key denies the deployment access)",
        ),
        Row(
            "more nodes than there were, where each restores its own files",
            {"resume_from": TRAINED, "nodes": 3, "checkpoint_restore": "own"},
            "resume_from: trained had 2 nodes, and checkpoint_restore is own: a node restores the files of its own rank; allowed: as many "
            "nodes, or checkpoint_restore all",
        ),
    ),
)
