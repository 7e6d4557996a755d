"""Which durations each function is told, in seconds; `Timing` says what they mean, and `Timing.of` picks them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherTiming:
    """Of the launcher."""

    power_off_unknown_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttendantTiming:
    """Of the attendant; how a job's nodes are judged is in the job."""

    report_every_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminatorTiming:
    """Of the terminator."""

    visibility_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupTiming:
    """Of the cleanup."""

    visibility_s: float
    terminate_again_s: float
    cleanup_again_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaperTiming:
    """Of the reaper."""

    reaper_grace_s: float
    reaper_second_look_s: float
    reaper_after_deadline_s: float
    reaper_profile_every_s: float
    reaper_longest_margin_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainTiming:
    """Of the drain."""

    visibility_s: float
    cleanup_again_s: float
    drain_patience_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnImagesTiming:
    """Of the function of own images."""

    image_patience_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectTiming:
    """Of a grid's collection, and of its end."""

    grid_collect_again_s: float
    grid_stop_patience_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildTiming:
    """Of a child."""

    stop_grace_s: float
    training_watch_s: float
    training_patience_s: float
