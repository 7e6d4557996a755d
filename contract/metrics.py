"""CloudWatch metrics of the functions: written as embedded metrics, read by their alarms; the reaper's also by its weekly summary.

Namespace `names.METRICS`, one dimension, DEPLOYMENT. All are counts, with one value per pass.

CloudWatch reads embedded metrics from any log line, so a node's log could write into this namespace; IAM only keeps
PutMetricData from it. The function's own log is the evidence; an alarm is a hint.
"""

DEPLOYMENT = "deployment"
"""The dimension."""

PASSES = "ReaperPasses"
"""1 at the end of each pass that read every region completely; an alarm starts when this heartbeat is missing."""
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
"""The reaper's."""

OVERDUE_LOOKS = "AttendantOverdueLooks"
"""Attempts at which a pass of the attendant looked later than it should have, or not at all."""
