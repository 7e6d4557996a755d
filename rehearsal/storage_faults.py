"""Defines the faults of S3: answers that come late, and calls that fail."""

from __future__ import annotations

from rehearsal.fault_keys import JOB, LASTING, FaultKey, FaultKind, any_seconds, choice, seconds

WHO = choice("nodes", "whose calls; a person's are never affected", "nodes", "functions", "all")
OF_NODES = FaultKey("", "name of the job whose nodes are meant; empty: every job, and functions", JOB.allowed, JOB.fits)


def _share(text: str) -> bool:
    return any_seconds(text) and 0 < float(text) <= 1


def _rate(text: str) -> bool:
    return not text or (any_seconds(text) and float(text) > 0)


STORAGE_FAULTS: dict[str, FaultKind] = {
    "s3-failing": FaultKind(
        "S3 refuses a share of the calls; a refused call has no effect",
        "While training, commits come late and the training goes on. The last ones are tried as often as SDKs try; a node whose work is "
        "then not in S3 says so: NodeLost, a new attempt from the newest checkpoint. A restore that cannot read is NodeLost too, never a "
        "beginning from zero. Admit, Launch and Sync are tried again until their patience is over; Admit takes AccessDenied for an answer.",
        {
            "as": choice(
                "slow-down",
                "503 SlowDown, 500 InternalError or 403 AccessDenied",
                "slow-down",
                "internal-error",
                "denied",
            ),
            "share": FaultKey("1", "of the calls", "a number above 0, at most 1", _share),
            "calls": choice("all", "which: those that read, that write, or all", "all", "reads", "writes"),
            "part": FaultKey("", "of an object's key, or of a list's prefix; empty: any", "a string", JOB.fits),
            "who": WHO,
            **LASTING,
            "job": OF_NODES,
        },
    ),
    "s3-slow": FaultKind(
        "every answer of S3 takes longer",
        "The training goes on, and its commits are late by that much. A restore, and the last commits, have the time that their phases "
        "have (`restore_allowance_s`, `save_allowance_s`): beyond it the attempt is Stalled, and a new one begins.",
        {
            "each": seconds("5", "longer that each answer takes"),
            "rate": FaultKey(
                "", "MB a second that a connection gets at most; empty: no limit", "a number above 0", _rate
            ),
            "who": WHO,
            **LASTING,
            "job": OF_NODES,
        },
    ),
}
