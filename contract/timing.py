"""Every duration that the product waits for, in seconds; the setting `timing` changes them, a rehearsal divides them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds. Time-outs of functions are not here: they bound how long code computes, not how long it waits."""

    heartbeat_s: float = 300.0
    """Train's HeartbeatSeconds: without one for so long, the attendant counts as dead."""
    boot_allowance_s: float = 900.0
    """From launch to a node's first report; beyond it the node is lost."""
    metal_boot_allowance_s: float = 2400.0
    """The same for bare metal, which tests its memory and devices before it boots: 20 minutes are usual for the largest."""
    fabric_patience_s: float = 300.0
    """How long a node with NVSwitch waits for its fabric manager."""
    silence_s: float = 180.0
    """Age of a node's last report, by S3's clock, beyond which a running node is lost."""
    restore_allowance_s: float = 3600.0
    """How long a node may fetch its checkpoint: 2 TB at 600 MB/s are 56 minutes. This and the next four are for nodes that live
    and get nowhere: beyond them the attempt is Stalled, long before its hours are over."""
    prepare_allowance_s: float = 3600.0
    """How long a node may unpack code and install requirements."""
    meet_allowance_s: float = 900.0
    """How long a node may wait for the master's address."""
    save_allowance_s: float = 3600.0
    """How long a node may take for its last commits."""
    uneven_allowance_s: float = 7200.0
    """How long other nodes may go on after one has ended well."""
    report_every_s: float = 30.0
    """How often a node reports."""
    orders_every_s: float = 5.0
    """How often a node looks for orders and for a spot notice (AWS advises 5 s)."""
    metadata_every_s: float = 2.0
    """How often a node looks for a tag that is not there yet."""
    logs_every_s: float = 5.0
    """How often a node sends its log."""
    stop_grace_s: float = 30.0
    """From SIGTERM to SIGKILL for the training process."""
    deadline_notice_s: float = 300.0
    """How long before its deadline a job is ordered to write a last checkpoint and stop."""
    power_off_unknown_s: float = 2700.0
    """The node's own timer from its first line of user data, before it knows its job's deadline."""
    power_off_after_deadline_s: float = 300.0
    """The node's own timer once it knows its deadline."""
    visibility_s: float = 5.0
    """How long a new instance may be invisible to DescribeInstances (about 1 s seen, 5 s to be safe)."""
    launch_patience_s: float = 1800.0
    """From an attempt's first walk over the ladder until no capacity is final."""
    launch_again_s: float = 60.0
    """Between two walks over the ladder."""
    quota_patience_s: float = 600.0
    """During a recovery, how long a quota error counts as missing capacity: the lost nodes may still count."""
    trouble_patience_s: float = 600.0
    """How long Admit and Launch are tried again after errors that are no answer of theirs (a throttle, an outage). What Launch has
    launched already costs meanwhile."""
    sync_patience_s: float = 3600.0
    """The same of Sync: nothing runs any more, and the work is done."""
    terminate_patience_s: float = 600.0
    """How long Terminate asks until instances begin to shut down."""
    terminate_again_s: float = 15.0
    """Between two tries of Terminate."""
    cleanup_again_s: float = 60.0
    """From a cleanup after an execution's end to the second one."""
    reaper_grace_s: float = 600.0
    """Younger things are kept, and so are those whose execution ended more recently: their own layers come first."""
    reaper_second_look_s: float = 180.0
    """A first look is at least so old when the second one may end something. Passes are 300 s apart, less up to 60 s by which
    EventBridge Scheduler may be late, and less what a pass takes: the next one is to be the second look."""
    reaper_after_deadline_s: float = 120.0
    """Beyond its deadline by so much, an instance is ended at the first look."""
    reaper_profile_every_s: float = 1800.0
    """How often the reaper also looks by instance profile, for instances that lost their tags."""
    reaper_longest_margin_s: float = 3600.0
    """Beyond the longest allowed job by so much, an untagged instance under our profile is nobody's."""
    training_watch_s: float = 60.0
    """Between two looks of a child at its training, give or take a fifth; 10,000 children are 170 DescribeTrainingJob a second."""
    training_patience_s: float = 86400.0
    """How long a child tries to submit its line while the account's quota of instances is used up."""
    grid_collect_again_s: float = 30.0
    """Between two collections, while trainings without a child still end."""
    grid_stop_patience_s: float = 900.0
    """How long a grid that was stopped waits until its trainings have ended; SageMaker gives them 120 s."""
    image_again_s: float = 15.0
    """Between two looks of a deploy at the platform's own images."""
    image_patience_s: float = 3000.0
    """How long a deploy waits for the platform's own images; CloudFormation waits an hour at most."""
    drain_again_s: float = 15.0
    """Between two tries of a destroy."""
    drain_patience_s: float = 3000.0
    """How long a destroy waits for executions and instances to end; CloudFormation waits an hour at most."""

    def boot_allowance_of(self, instance_type: str) -> float:
        """From launch to the first report of a node of that type."""
        return self.metal_boot_allowance_s if ".metal" in instance_type else self.boot_allowance_s

    def of(self, kind: type[T]) -> T:
        """Returns the durations of `kind`, a dataclass whose fields are some of these."""
        return kind(**{field.name: getattr(self, field.name) for field in fields(kind)})  # type: ignore[arg-type]

    def divided(self, speed: float) -> Timing:
        """Returns the same durations, `speed` times shorter (for a rehearsal)."""
        return Timing(**{field.name: round(getattr(self, field.name) / speed, 3) for field in fields(self)})
