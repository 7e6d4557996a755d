"""CloudWatch metrics of the reaper and the attendant, written as embedded metrics: lines of their logs, which cost no call.

Namespace `names.METRICS`, one dimension, DEPLOYMENT. CloudWatch reads embedded metrics from any log event, whoever wrote it, so a node
with its own credentials can write into this namespace; IAM only keeps PutMetricData from it. So no decision rests on them, and no alarm
rests on one that a further value could silence (docs/decisions/0027-an-alarm-may-rest-on-a-maximum.md).
The functions' own logs are the evidence.
"""

DEPLOYMENT = "deployment"
"""The dimension."""

# Of the reaper: counts, with one value per pass. They are figures for people, in its weekly summary and in the console.
PASSES = "ReaperPasses"
"""1 at the end of each pass that read every region completely."""
SEEN = "ReaperSeen"
"""Our instances that are pending, running, stopping or stopped, and our trainings that run."""
ENDED = "ReaperEnded"
"""Things that a pass ended (0 in report-only mode)."""
WOULD_END = "ReaperWouldEnd"
"""Things that a pass in report-only mode would have ended."""
TOLD = "ReaperTold"
"""Things that were kept because too little is known about them: a person should look."""
REFUSED = "ReaperRefused"
"""Things that AWS refused to end, or that still run although an earlier pass ended them."""
LIMITED = "ReaperLimited"
"""Things that a pass left for the next one, because it had reached its limit."""
FAILED_REGIONS = "ReaperFailedRegions"
"""Regions that could not be read completely."""

ALL = (PASSES, SEEN, ENDED, WOULD_END, TOLD, REFUSED, LIMITED, FAILED_REGIONS)
"""All of the reaper."""

# Of the attendant: the longest over all jobs that train, with one value per invocation of a pass; none where nothing trains.
CHECKPOINT_AGE = "CheckpointAge"
"""How long ago the newest set was closed or, before the first, the training began: percent of the job's checkpoint_minutes."""
COMMIT_SECONDS = "CommitSeconds"
"""What the newest commit of a rank took."""
COMMIT_SHARE = "CommitShare"
"""The same in percent of the job's checkpoint_minutes."""

# Of the attendant too: of all attempts whose nodes run, with one value per invocation of a pass.
COST_SHARE = "CostShare"
"""What a job has cost at most, in percent of its max_cost_usd: the largest of all jobs with a cap."""
RUNNING_USD = "RunningUsdPerHour"
"""What an hour of all nodes costs at most, US dollars: the sum, without nodes whose price is not known."""

# Of the function that speaks with a cluster of Kubernetes: one value every five minutes.
IDLE_MACHINES = "IdleMachines"
"""Machines of the cluster that no MPIJob needs."""

UNITS = {
    CHECKPOINT_AGE: "Percent",
    COMMIT_SECONDS: "Seconds",
    COMMIT_SHARE: "Percent",
    COST_SHARE: "Percent",
    RUNNING_USD: "None",
}
"""CloudWatch's name of each metric's unit; every other metric is a Count."""
