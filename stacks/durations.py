"""The durations of the settings: which have a fixed limit, and which depend on each other."""

from __future__ import annotations

from pydantic import model_validator
from pydantic.dataclasses import dataclass

from contract.timing import Timing
from stacks.blocks import CLOSED

LONGEST_S = 2_592_000
"""No duration is longer. Step Functions takes no time-out and no pause of more than 99,999,999 s, and some durations add up there."""
_HIDDEN = "SQS hides a message for 12 hours at most, the time of its function included"
_KEPT = "SQS keeps a message for 14 days"
MOST = (
    ("cleanup_again_s", 900, "SQS delays no message longer"),
    ("start_check_s", 900, "SQS delays no message longer"),
    ("start_again_s", 42_000, _HIDDEN),
    ("start_patience_s", 1_200_000, _KEPT),
    ("terminate_again_s", 42_000, _HIDDEN),
    ("grid_collect_again_s", 42_000, _HIDDEN),
    ("grid_stop_patience_s", 400_000, f"{_KEPT}, and a search's cleanup waits three patiences"),
    ("reaper_second_look_s", 200, "passes are 240 to 360 s apart, and the second look is to be the next one"),
    ("reaper_after_deadline_s", 240, "with 300 s from look to look, what runs on is to end 600 s after its deadline"),
    ("image_patience_s", 3000, "CloudFormation waits 3600 s, and the last look and the answer take some of them"),
    ("drain_patience_s", 3000, "CloudFormation waits 3600 s, and the last try and the answer take some of them"),
)
"""Durations with a fixed limit: (name, at most so many seconds, why). A divided timing stays below them."""
_RECEIVED = "SQS delivers a message 1,000 times at most"
MOST_TIMES = (
    ("start_patience_s", 1000, "start_again_s", _RECEIVED),
    ("terminate_patience_s", 666, "terminate_again_s", f"{_RECEIVED}, and a cleanup waits one and a half patiences"),
    ("grid_stop_patience_s", 333, "grid_collect_again_s", f"{_RECEIVED}, and a search's cleanup waits three patiences"),
)
"""Durations that are tried so often: (name, at most so many times, name, why). A divided timing obeys them too."""
RATIOS = (
    ("silence_s", 2, "report_every_s"),
    ("deadline_notice_s", 1, "stop_grace_s"),
    ("boot_allowance_s", 1, "report_every_s"),
    ("metal_boot_allowance_s", 1, "boot_allowance_s"),
    ("restore_allowance_s", 2, "report_every_s"),
    ("prepare_allowance_s", 2, "report_every_s"),
    ("meet_allowance_s", 2, "report_every_s"),
    ("prepare_allowance_s", 3, "role_patience_s"),
    ("gate_allowance_s", 12, "links_patience_s"),
    ("save_allowance_s", 2, "report_every_s"),
    ("uneven_allowance_s", 2, "report_every_s"),
    ("launch_patience_s", 1, "launch_again_s"),
    ("wait_longest_s", 1, "wait_again_s"),
    ("wait_heartbeat_s", 6, "wait_again_s"),
    ("terminate_patience_s", 1, "terminate_again_s"),
    ("power_off_unknown_s", 1, "boot_allowance_s"),
    ("cleanup_again_s", 1, "visibility_s"),
    ("missing_report_after_s", 1, "reaper_grace_s"),
    ("missing_report_after_s", 2, "terminate_patience_s"),
    ("missing_report_until_s", 2, "missing_report_after_s"),
    ("reaper_grace_s", 1, "cleanup_again_s"),
    ("reaper_grace_s", 2, "visibility_s"),
    ("reaper_longest_margin_s", 1, "power_off_after_deadline_s"),
    ("training_patience_s", 1, "training_watch_s"),
    ("grid_stop_patience_s", 1, "grid_collect_again_s"),
    ("start_patience_s", 1, "start_again_s"),
    ("image_patience_s", 1, "image_again_s"),
    ("drain_patience_s", 1, "drain_again_s"),
    ("drain_patience_s", 1, "cleanup_again_s"),
)
"""Durations that depend on each other: (name, at least so many times, name). A divided timing obeys them too."""


@dataclass(config=CLOSED, frozen=True, kw_only=True)
class TimingSettings(Timing):
    """Every duration that the deployment waits for, in seconds."""

    @model_validator(mode="after")
    def _agrees(self) -> TimingSettings:
        for name in Timing.__dataclass_fields__:
            if not 0 < getattr(self, name) <= LONGEST_S:
                raise ValueError(f"{name} is {getattr(self, name)}; allowed: more than 0 seconds, up to {LONGEST_S}")
        for longer, times, shorter in RATIOS:
            if getattr(self, longer) < times * getattr(self, shorter):
                wanted = f"{times} x {shorter}" if times > 1 else shorter
                raise ValueError(f"{longer} is {getattr(self, longer)}; allowed: at least {wanted}")
        for longer, times, shorter, why in MOST_TIMES:
            if getattr(self, longer) > times * getattr(self, shorter):
                raise ValueError(
                    f"{longer} is {getattr(self, longer)}; allowed: at most {times} x {shorter}, because {why}"
                )
        for name, most, why in MOST:
            if getattr(self, name) > most:
                raise ValueError(f"{name} is {getattr(self, name)}; allowed: at most {most}, because {why}")
        return self
