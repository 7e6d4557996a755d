"""CloudWatch metrics of the reaper, written as embedded metrics: figures for people, in its weekly summary and in the console.

Namespace `names.METRICS`, one dimension, DEPLOYMENT. All are counts, with one value per pass.

No alarm and no decision may rest on them. CloudWatch reads embedded metrics from any log event, whoever wrote it, so a node with its own
credentials can write into this namespace; IAM only keeps PutMetricData from it. The function's own log is the evidence.
"""

DEPLOYMENT = "deployment"
"""The dimension."""

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
"""All of them."""
