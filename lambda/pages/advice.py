"""Says of each end what a person does next, in one or two sentences."""

from __future__ import annotations

from contract import errors, execution_facts

_RESUME = "Start it again under a new name with resume_from: it begins from the newest checkpoint."
_MENDS_ITSELF = "Nothing: the machine asks again by itself."
NEXT: dict[str, str] = {
    error.__name__: advice
    for error, advice in (
        (
            errors.InvalidRequest,
            "Correct each field that the cause names, and start the execution again under a new name. Nothing was created.",
        ),
        (errors.CapacityPending, _MENDS_ITSELF),
        (
            errors.CapacityUnavailable,
            'Allow more: other instance types, "regions": "auto", the market spot-then-on-demand, or max_wait_hours. '
            "The launch answers below say what EC2 answered in each place.",
        ),
        (
            errors.CapacityAwaited,
            "Nothing: the job waits for capacity. Stop it and widen the request if it must not wait.",
        ),
        (
            errors.LaunchIncomplete,
            "Look at the launch answers below: a place had machines for some roles only. Name more instance_types for the role that lacked "
            "them, or give roles types that one zone has.",
        ),
        (
            errors.QuotaExceeded,
            "Raise the quota that the cause names in Service Quotas, in the region that it names, or name other types or regions.",
        ),
        (
            errors.Interrupted,
            "AWS took the nodes back more often than the job may begin again. Use the market on-demand or another type, or raise "
            f"limits.recoveries in the settings. {_RESUME}",
        ),
        (
            errors.NodeLost,
            "Read the causes of all attempts below. The same type each time: take another. Lost at boot: check the machine image "
            f"and the network's way to S3. {_RESUME}",
        ),
        (
            errors.NodeUnhealthy,
            f"Take another type or zone, and give AWS Support the instance ids of the machines at fault. {_RESUME}",
        ),
        (
            errors.Stalled,
            "Compare the stacks at the end of each node's log: the rank that differs holds up the others. Then mend the code, "
            "or the wait that it names.",
        ),
        (
            errors.TrainingFailed,
            "Read the last lines of the node that failed, below, then its whole log. Mend the code and start it again under a new "
            "name. Exit code 137 means out of memory: see the stream /kernel.",
        ),
        (errors.RetriedExit, "Nothing: the job begins again, as its request says (retries)."),
        (
            errors.RoleRefused,
            "Correct the trust policy of the role that job_role names, as STS says in the cause, then start the job again.",
        ),
        (
            errors.DeadlineReached,
            f"Its hours are used up; what was committed is kept. {_RESUME} Give it more max_hours.",
        ),
        (
            errors.BudgetExceeded,
            f"Its money is used up; what was committed is kept. {_RESUME} Give it more max_cost_usd.",
        ),
        (
            errors.SyncIncomplete,
            f"S3 lacks files that the cause names: look for a rule of the bucket, or a person, that deletes them. {_RESUME}",
        ),
        (errors.PatienceOver, "AWS did not answer for that long: start it again. The cause has its last error."),
        (errors.StillRunning, _MENDS_ITSELF),
        (errors.BuildFailed, "Read the last lines of the build in the cause, mend the context, and build again."),
        (errors.HostAway, _MENDS_ITSELF),
        (errors.StillBuilding, _MENDS_ITSELF),
        (errors.StillTraining, _MENDS_ITSELF),
        (
            errors.DatabaseAway,
            "Look at the catalogue's cluster in the console of RDS. Once it is available, start the grid again under another name.",
        ),
        (
            errors.GridFailed,
            "Read the cause, then start the manifest failed.jsonl as a grid of another name: it has every line that did not complete.",
        ),
        (
            errors.SearchFailed,
            "Read why the trials failed, below, and correct it. Then start a search of another name with resume: it keeps every trial.",
        ),
    )
}
"""What to do after each error of the contract."""
ABORTED = f"It was stopped by a person or by a destroy. {_RESUME}"
TIMED_OUT = "It ran longer than its machine allows. Find the state that did not end in the execution's history, then start it again."
GONE = "Step Functions keeps an execution for 90 days; its report and its files stay in S3."
OTHER = (
    "This error is none of a job's own: open the execution and read the state that failed and its function's log. Start the job again "
    "once that is mended."
)


def choose_next(error: str, status: str = "") -> str:
    """Returns what a person does after an execution ended with this error and status."""
    if error in NEXT:
        return NEXT[error]
    return {execution_facts.ABORTED: ABORTED, execution_facts.TIMED_OUT: TIMED_OUT, "GONE": GONE}.get(status, OTHER)
