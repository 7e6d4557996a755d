"""EventBridge Scheduler: moto keeps schedules and never fires one; here each fires at its rate, a little late, with its role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moto.scheduler.models import scheduler_backends

from localaws.services.events import each_period, lateness_s
from localaws.services.targets import Targets

if TYPE_CHECKING:
    from localaws.server import LocalAws

EMPTY = "{}"
"""Input of a schedule that sets none."""


def install(aws: LocalAws) -> None:
    """Starts the clock of schedules. Of a cron expression only the frequency is kept, as for rules."""
    targets = Targets(aws)

    def fire(schedule: Any) -> None:
        target = schedule.target
        body = str(target.get("Input") or EMPTY)
        aws.later(lateness_s(aws), lambda: targets.by_role(target, body, schedule.arn))

    aws.later(0, lambda: each_period(aws, lambda: _enabled(aws), fire))


def _enabled(aws: LocalAws) -> dict[str, tuple[str, Any]]:
    return {
        schedule.arn: (schedule.schedule_expression, schedule)
        for backend in list(scheduler_backends[aws.account].values())
        for group in list(backend.schedule_groups.values())
        for schedule in list(group.schedules.values())
        if schedule.state != "DISABLED"  # moto forgets the state in an update that sets none
    }
