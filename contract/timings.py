"""Which durations each function is told, in seconds; `Timing` says what they mean, and `Timing.of` picks them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherTiming:
    """Durations of the launcher."""

    power_off_unknown_s: float
    launch_pace_s: float
    wait_heartbeat_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttendantTiming:
    """Durations of the attendant; the job itself has those by which its nodes are judged."""

    report_every_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminatorTiming:
    """Durations of the terminator."""

    visibility_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupTiming:
    """Durations of the cleanup."""

    visibility_s: float
    terminate_again_s: float
    cleanup_again_s: float
    missing_report_after_s: float
    missing_report_until_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaperTiming:
    """Durations of the reaper."""

    reaper_grace_s: float
    reaper_second_look_s: float
    reaper_after_deadline_s: float
    reaper_profile_every_s: float
    reaper_longest_margin_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainTiming:
    """Durations of the drain."""

    visibility_s: float
    cleanup_again_s: float
    drain_patience_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnImagesTiming:
    """Durations of the function of own images."""

    image_patience_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectTiming:
    """Durations of a grid's collection, and of its end."""

    grid_collect_again_s: float
    grid_stop_patience_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildTiming:
    """Durations of a child."""

    stop_grace_s: float
    training_watch_s: float
    training_patience_s: float
