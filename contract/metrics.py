"""CloudWatch metrics of the reaper: written by the function as embedded metrics, read by its alarms and its weekly summary.

Namespace `names.METRICS`, one dimension, DEPLOYMENT. All are counts, one value a pass.

CloudWatch takes embedded metrics out of any log line, whoever wrote it: no right keeps a node's log from writing into this
namespace, as PutMetricData is kept from it. The reaper's own log is the evidence, an alarm is a hint.
"""

DEPLOYMENT = "deployment"
"""The dimension."""

PASSES = "ReaperPasses"
"""1 at the end of each pass that saw every region whole: the heartbeat whose absence is an alarm."""
SEEN = "ReaperSeen"
"""Instances of ours that run, begin to or are stopped, and trainings of ours that run."""
ENDED = "ReaperEnded"
"""Things that a pass ended (in report-only mode: none)."""
WOULD_END = "ReaperWouldEnd"
"""Things that a pass in report-only mode would have ended."""
TOLD = "ReaperTold"
"""Things that were kept for want of knowledge: somebody should look."""
REFUSED = "ReaperRefused"
"""Things that AWS did not end when told to, or that were told to end before and run on."""
LIMITED = "ReaperLimited"
"""Things that a pass left for the next one, because it had reached its limit."""
FAILED_REGIONS = "ReaperFailedRegions"
"""Regions that could not be looked at whole."""

ALL = (PASSES, SEEN, ENDED, WOULD_END, TOLD, REFUSED, LIMITED, FAILED_REGIONS)
