"""Every duration that the product waits for, in seconds; the setting `timing` changes them, a rehearsal divides them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TypeVar

T = TypeVar("T")
UNDIVIDED = frozenset({"image_patience_s", "drain_patience_s"})
"""How long CloudFormation waits for builds, and for machines to end: a rehearsal has them compute and end in real seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds. Time-outs of functions are not here: they bound how long code computes, not how long it waits."""

    heartbeat_s: float = 300.0
    """Train's HeartbeatSeconds: after this long without a heartbeat the attendant counts as dead."""
    boot_allowance_s: float = 900.0
    """How long a node may take from its launch to its first report; a node that takes longer is lost."""
    metal_boot_allowance_s: float = 2400.0
    """The boot allowance of bare metal, which tests its memory and devices first: the largest types usually take 20 minutes."""
    fabric_patience_s: float = 300.0
    """How long a node with NVSwitch waits for its fabric manager."""
    silence_s: float = 180.0
    """A running node is lost when its last report is older than this, by AWS's clock."""
    restore_allowance_s: float = 3600.0
    """How long a node may fetch its checkpoint: 2 TB at 600 MB/s take 56 minutes. This and the next four bound nodes that report
    and make no progress: the attempt then fails as Stalled, long before the job's hours are over."""
    prepare_allowance_s: float = 3600.0
    """How long a node may unpack code and install requirements."""
    role_patience_s: float = 300.0
    """How long STS may deny a session of a `job_role` before the attempt ends: IAM knows a new role, or a new trust policy, only after
    some time everywhere."""
    meet_allowance_s: float = 900.0
    """How long a node may wait for the master's address."""
    gate_allowance_s: float = 10800.0
    """How long a node may wait for its peers and measure the network with them (`health: deep`). It is longer than a peer may
    take to boot and to prepare. The attempt of a peer that is lost, or that makes no progress, ends sooner."""
    links_patience_s: float = 300.0
    """How long an all-reduce between nodes may take that measures their network, the start of PyTorch included: from a fresh disk that
    alone can take minutes."""
    save_allowance_s: float = 3600.0
    """How long a node may take for its last commits."""
    warm_up_s: float = 900.0
    """How long from its start the progress of a training is not judged (`stall` in the request): it imports, compiles and loads."""
    uneven_allowance_s: float = 7200.0
    """How long other nodes of a job without roles may go on after one node has ended without an error."""
    report_every_s: float = 30.0
    """How often a node reports."""
    orders_every_s: float = 4.0
    """How often a node looks for orders and for a spot notice (AWS advises 5 s): one look until it is seen, one until every node has the
    order, and the attendant's answer between them take at most 10 s."""
    metadata_every_s: float = 2.0
    """How often a node looks for a tag that its metadata does not show yet."""
    logs_every_s: float = 5.0
    """How often a node sends its log."""
    stop_grace_s: float = 30.0
    """How long the training process has from SIGTERM to SIGKILL."""
    deadline_notice_s: float = 300.0
    """How long before its deadline the nodes of a job are ordered to write a last checkpoint and stop."""
    power_off_unknown_s: float = 2700.0
    """A node powers itself off this long after its first line of user data, unless it has learnt its job's deadline."""
    power_off_after_deadline_s: float = 300.0
    """A node powers itself off this long after its job's deadline."""
    visibility_s: float = 5.0
    """How long a new instance may be invisible to DescribeInstances (about 1 s seen, 5 s to be safe)."""
    launch_patience_s: float = 1800.0
    """How long after an attempt's first walk over the ladder Launch keeps trying; then missing capacity ends the job."""
    launch_again_s: float = 60.0
    """How long Launch waits between two walks over the ladder."""
    empty_place_s: float = 120.0
    """How long the launcher skips a place for other jobs once it had no capacity for one."""
    spot_prices_s: float = 3600.0
    """How old spot prices may be that order the places of a job that waits for capacity. They move over hours and days, not minutes."""
    launch_pace_s: float = 2.0
    """The least time between two launch calls in a region for all jobs that wait for capacity together. EC2 allows an account two calls a
    second in a region, and five at once; three quarters of that stay for new jobs. A call for more than two nodes waits longer, one second
    a node and 30 at most: EC2 may count the instances that are asked for, and gives back two a second."""
    wait_again_s: float = 60.0
    """How long the launcher first pauses between two tries for a job that waits for capacity; each pause is twice as long as the one
    before, and varies by half."""
    wait_longest_s: float = 900.0
    """The longest pause between two tries for a job that waits for capacity."""
    wait_heartbeat_s: float = 21600.0
    """HeartbeatSeconds of "Wait for capacity": after this long without one its token counts as lost, and the machine
    enters the state again."""
    recovery_pause_s: float = 30.0
    """How long a job pauses before a new attempt where the one before died young: without a newer checkpoint, and within
    `recovery_longest_s` of its launch. Each further one that dies young makes the pause twice as long."""
    recovery_longest_s: float = 900.0
    """The longest pause before a new attempt."""
    quota_patience_s: float = 600.0
    """How long a quota error counts as missing capacity during a recovery: the lost nodes may still count against the quota."""
    trouble_patience_s: float = 600.0
    """How long Admit and Launch are tried again after errors other than their own verdicts (a throttle, an outage). Instances that
    Launch has already launched cost money meanwhile."""
    sync_patience_s: float = 3600.0
    """How long Sync is tried again after errors other than its own verdicts: no instance runs any more, and the work is done."""
    terminate_patience_s: float = 600.0
    """How long Terminate asks until instances begin to shut down."""
    terminate_again_s: float = 15.0
    """How long Terminate pauses before it is tried again."""
    cleanup_again_s: float = 60.0
    """How long after the cleanup of an execution's end the second cleanup follows."""
    missing_report_after_s: float = 1320.0
    """How long after a bad end of an execution the cleanup's clock looks whether its report is there. The event of the end starts the
    cleanup at once; where it got lost, the reaper has ended by then what was left, at its second look."""
    missing_report_until_s: float = 3600.0
    """How long after the end the clock looks for the last time, every five minutes until then. That is 864 ListExecutions a day, three a
    tick (more where more than a thousand executions ended badly in 90 days), and up to five reads a tick for each end that it looks at."""
    reaper_grace_s: float = 600.0
    """The reaper keeps younger resources, and those whose execution ended more recently: Terminate and the cleanup come first."""
    reaper_second_look_s: float = 180.0
    """The least time between the first look at a resource and the second, which may end it. Passes are 300 s apart, less up to 60 s
    by which EventBridge Scheduler may be late, and less what a pass takes: the next pass can be the second look."""
    reaper_after_deadline_s: float = 120.0
    """The reaper ends an instance at the first look when its deadline passed this long ago."""
    reaper_profile_every_s: float = 1800.0
    """How often the reaper also looks by instance profile, for instances that lost their tags."""
    reaper_longest_margin_s: float = 3600.0
    """An untagged instance with our profile is an orphan when it is older than the longest allowed job by this much."""
    training_watch_s: float = 60.0
    """How often a child looks at its training, give or take a fifth; 10,000 children are 170 DescribeTrainingJob a second."""
    training_patience_s: float = 86400.0
    """How long a child tries to submit its line while the account has no quota of instances left."""
    grid_collect_again_s: float = 30.0
    """How often a grid collects again while trainings without a child still end."""
    grid_stop_patience_s: float = 900.0
    """How long a stopped grid waits until its trainings have ended; SageMaker gives them 120 s."""
    start_again_s: float = 600.0
    """How often a start of uploaded data is tried again while it cannot be made."""
    start_patience_s: float = 86400.0
    """How long it is tried, while admission is closed or a service is away; then it is a letter."""
    start_check_s: float = 900.0
    """How long after a campaign's or a watch's start the starter asks how it goes on, and again. A machine refuses its input within
    minutes."""
    image_again_s: float = 15.0
    """How often a deploy looks at the platform's own images."""
    image_patience_s: float = 3000.0
    """How long a deploy waits for the platform's own images; CloudFormation waits an hour at most."""
    drain_again_s: float = 15.0
    """How often a destroy looks again whether everything has ended."""
    drain_patience_s: float = 3000.0
    """How long a destroy waits for executions and instances to end; CloudFormation waits an hour at most."""

    def boot_allowance_of(self, instance_type: str) -> float:
        """How long a node of that type may take from its launch to its first report."""
        return self.metal_boot_allowance_s if ".metal" in instance_type else self.boot_allowance_s

    def of(self, kind: type[T]) -> T:
        """Returns the durations of `kind`, a dataclass whose fields are some of these."""
        return kind(**{field.name: getattr(self, field.name) for field in fields(kind)})  # type: ignore[arg-type]

    def divided(self, speed: float) -> Timing:
        """Returns the same durations, `speed` times shorter (for a rehearsal), but for those of UNDIVIDED."""
        shorter = {field.name: round(getattr(self, field.name) / speed, 3) for field in fields(self)}
        return replace(self, **{name: value for name, value in shorter.items() if name not in UNDIVIDED})
