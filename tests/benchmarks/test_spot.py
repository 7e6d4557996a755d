"""The replay of spot traces: what it reads, what it refuses, and figures that can be worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.spot import page, peers
from benchmarks.spot.__main__ import main
from benchmarks.spot.assumed import Assumed, Chance, Loss
from benchmarks.spot.cases import CASES, NOTICED, TABLE
from benchmarks.spot.relaunch import Relaunched, percentile, relaunched
from benchmarks.spot.replay import Replayed, replay
from benchmarks.spot.traces import SOURCE, VARIABLE, Stretch, Trace, Unusable, read, trace, traces
from benchmarks.spot.training import Training

NAME = "preemption_1-node_aws-01-01-2026_eu-central-1a_v100_1.json"
GAP_S = 300.0
HOUR = [1] * 12
PENDING_S = 10.0
PLAIN = Assumed(
    boot_s=(40.0, 40.0), pending_s=(PENDING_S, PENDING_S), tag_s=(0.0, 0.0), event_s=(1.0, 1.0), events_lost=0.0,
    clock_s=(0.0, 0.0), without_notice=0.0, silent=0.0,
)  # fmt: skip
"""Nothing is drawn but the delay of the table's stream."""
ABRUPT, SILENT = replace(PLAIN, without_notice=1.0), replace(PLAIN, silent=1.0)
BEGAN_S = 40.0 - PENDING_S + PLAIN.before_first_step_s()
"""From `running` to the first step of a first attempt."""


def written(folder: Path, content: object, name: str = NAME) -> Path:
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder / name


def points(*counts: int, gap_s: float = GAP_S) -> dict[str, Any]:
    return {"metadata": {"gap_seconds": gap_s}, "data": list(counts)}


def of(counts: list[int], nodes: int = 1) -> Trace:
    return trace("synthetic", nodes, GAP_S, counts)


# Traces


def test_a_stretch_lasts_from_the_first_point_with_all_nodes_to_the_first_one_without() -> None:
    found = of([0, 4, 4, 3, 2, 4, 5, 0], nodes=4)
    assert found.stretches == (Stretch(300.0, 900.0, 1), Stretch(1500.0, 2100.0, 4))
    assert (found.mean_up_s, found.interruptions, found.length) == (600.0, 2, 2400.0)


def test_what_the_end_of_a_trace_cuts_off_is_no_interruption() -> None:
    assert of([1, 1]).stretches == (Stretch(0.0, 600.0, 0),)
    assert of([1, 1]).interruptions == 0


def test_fewer_nodes_than_were_asked_for_are_none_to_a_job() -> None:
    found = of([3, 3, 2], nodes=4)
    assert (found.stretches, found.mean_up_s) == ((), 0.0)


def test_the_hardest_trace_comes_first(tmp_path: Path) -> None:
    written(tmp_path, points(1, 1, 1, 0), NAME)
    written(tmp_path, points(4, 0, 4, 0), NAME.replace("1-node", "4-node"))
    assert [one.nodes for one in traces(tmp_path)] == [4, 1]


@pytest.mark.parametrize(
    "content",
    [
        "not JSON", "[]", "{}", {"data": [1]}, {"metadata": {}, "data": [1]}, {"metadata": [], "data": [1]},
        {"metadata": {"gap_seconds": 300}}, points(), points(1, -1), points(1, gap_s=0), points(1, gap_s=-1),
        points(1, gap_s=1e9), {**points(), "data": [1, True]}, {**points(), "data": [1, 0.5]},
        {**points(), "data": ["1"]}, {**points(1), "metadata": {"gap_seconds": True}}, '{"metadata": {"gap_seconds": NaN}, "data": [1]}',
    ],
    ids=str,
)  # fmt: skip
def test_a_broken_trace_is_refused_by_its_name(tmp_path: Path, content: object) -> None:
    with pytest.raises(Unusable, match=NAME):
        read(written(tmp_path, content))


@pytest.mark.parametrize("name", ["trace.json", "preemption_x-node_aws-1.json", "prices_1-node_aws-1.json"])
def test_a_file_that_does_not_say_how_many_nodes_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unusable, match=name):
        read(written(tmp_path, points(1), name))


@pytest.mark.parametrize("folder", ["empty", "missing"])
def test_without_traces_the_command_says_where_to_get_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["--traces", str(tmp_path / folder)]) == 2
    assert SOURCE in capsys.readouterr().err


def test_a_folder_that_nobody_names_is_not_guessed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert main([]) == 2
    assert VARIABLE in capsys.readouterr().err


# What is drawn


def test_the_shares_of_losses_are_those_that_are_assumed() -> None:
    chance = Chance(0, "a")
    kinds = [chance.loss(Assumed(without_notice=0.2, silent=0.1), number) for number in range(2000)]
    assert [kinds.count(one) / 2000 for one in (Loss.NOTICE, Loss.ABRUPT, Loss.SILENT)] == pytest.approx(
        [0.7, 0.2, 0.1], abs=0.03
    )


def test_draws_are_the_same_for_whoever_asks_and_others_for_another_trace_or_seed() -> None:
    assert Chance(0, "a").boot_s(Assumed(), 1, 0, 2) == Chance(0, "a").boot_s(Assumed(), 1, 0, 2)
    assert len({Chance(seed, name).boot_s(Assumed(), 1, 0, 2) for seed in (0, 1) for name in "ab"}) == 4
    assert Chance(0, "a").ranks(0, nodes=4, lost=9) != []


# Trainers


@pytest.mark.parametrize(
    ("seconds", "trained_s"),
    [(0.0, 0.0), (599.0, 599.0), (601.0, 600.0), (602.0, 600.0), (603.0, 601.0), (1300.0, 1296.0)],
)
def test_a_save_takes_its_pause(seconds: float, trained_s: float) -> None:
    training = Training(Assumed(save_every_s=600.0, pause_s=2.0), nodes=1)
    assert training.ready(0, 7, 100.0)
    assert training.trained_s(100.0 + seconds) == trained_s
    assert training.step(100.0 + seconds) == 7 + int(trained_s)


def test_trainers_begin_with_the_last_of_them_and_stand_still_with_the_first_that_is_gone() -> None:
    training = Training(Assumed(), nodes=2)
    assert not training.ready(1, 0, 50.0)
    assert training.trained_s(60.0) == 0.0
    assert training.ready(0, 0, 100.0)
    training.stop(130.0)
    training.stop(140.0)
    assert training.trained_s(500.0) == 30.0


def test_trainers_never_begin_once_one_is_gone() -> None:
    training = Training(Assumed(), nodes=2)
    training.ready(0, 0, 50.0)
    training.stop(60.0)
    assert not training.ready(1, 0, 70.0)
    assert training.trained_s(100.0) == 0.0


# Peers, by hand


def test_an_hourly_peer_keeps_whole_hours_alone() -> None:
    assumed = replace(PLAIN, pause_s=10.0)
    assert peers.committed_s(3599.0, assumed, every_s=3600.0, whole=False) == 0.0
    # The second save ends 12 s after it began.
    assert peers.committed_s(7211.0, assumed, every_s=3600.0, whole=False) == 3600.0
    assert peers.committed_s(7212.0, assumed, every_s=3600.0, whole=False) == 7190.0
    assert peers.committed_s(7212.0, assumed, every_s=3600.0, whole=True) == 7192.0
    assert peers.committed_s(-5.0, assumed, every_s=3600.0, whole=True) == 0.0


def test_the_bound_knows_what_is_not_worth_a_launch() -> None:
    found = peers.bound(of([1, 0, *HOUR, 0]), replace(PLAIN, boot_s=(300.0, 300.0)), Chance(0, "a"))
    useful_s = 3600.0 - 300.0 - PLAIN.before_first_step_s(kept=True) - PLAIN.restore_s - PLAIN.save_s - PLAIN.commit_s
    assert (found.paid_s, found.progress_s) == (3600.0 - PENDING_S, useful_s)


@pytest.mark.parametrize("peer", [peers.hourly, peers.skypilot_like, peers.bound])
def test_a_peer_without_capacity_pays_nothing_and_comes_no_further(peer: Any) -> None:
    assert (peer(of([0] * 12), Assumed(), Chance(0, "a")).share) == 0.0


def test_no_peer_is_better_than_the_bound() -> None:
    some, assumed = of([*HOUR, *HOUR, 0, 1, 0, *HOUR, 0, 1, 1, 0, *HOUR, *HOUR, *HOUR]), Assumed()
    best = peers.bound(some, assumed, Chance(0, "a"))
    for peer in (peers.hourly(some, assumed, Chance(0, "a")), peers.skypilot_like(some, assumed, Chance(0, "a"))):
        assert 0 < peer.share < best.share < 1
        assert peer.progress_s < best.progress_s


# The replay


def test_a_job_without_capacity_comes_no_further_and_pays_nothing() -> None:
    found = replay(of([0] * 24), PLAIN)
    assert (found.paid_s, found.progress_s, found.share, found.attempts) == (0.0, 0.0, 0.0, 0)


def test_a_job_that_nobody_interrupts_loses_its_begin_and_its_end_alone() -> None:
    found = replay(of(HOUR), PLAIN)
    assert (found.status, found.attempts) == ("SUCCEEDED", 1)
    assert (found.lost_s, found.unused_s) == (pytest.approx(0.0, abs=1.0), 0.0)
    assert found.before_s == pytest.approx(BEGAN_S, abs=5.0)
    assert found.paused_s == 5 * PLAIN.pause_s  # after 10, 20, 30, 40 and 50 minutes
    assert found.after_s == pytest.approx(PLAIN.save_s + PLAIN.commit_s, abs=8.0)
    assert found.progress_s == pytest.approx(3600.0 - BEGAN_S - 5 * PLAIN.pause_s, abs=20.0)


def test_a_notice_costs_no_step() -> None:
    found = replay(of([*HOUR, 0, 0, *HOUR]), PLAIN)
    assert (found.status, found.attempts) == ("SUCCEEDED", 2)
    assert found.lost_s == pytest.approx(0.0, abs=2.0)
    # By the notice both attempts have trained, and the first one stops within ten seconds of it.
    assert found.after_s < 2 * (PLAIN.save_s + PLAIN.commit_s + 10.0)
    assert found.paid_s < 2 * 3600.0 - PLAIN.notice_s + 60.0


def test_a_pending_instance_is_not_paid() -> None:
    some = of([*HOUR, 0, 0, *HOUR])
    soon, late = (replay(some, replace(PLAIN, pending_s=(one, one))) for one in (PENDING_S, PENDING_S + 15.0))
    assert (late.attempts, late.progress_s) == (2, soon.progress_s)
    assert soon.paid_s - late.paid_s == pytest.approx(2 * 15.0)
    assert soon.before_s - late.before_s == pytest.approx(2 * 15.0)


def test_an_instance_that_ends_while_it_is_pending_is_not_paid() -> None:
    found = replay(trace("synthetic", 1, 30.0, [1, *[0] * 60]), replace(ABRUPT, pending_s=(60.0, 60.0)))
    assert (found.attempts, found.paid_s, found.progress_s) == (1, 0.0, 0.0)


def test_a_later_attempt_fetches_what_the_first_one_installed() -> None:
    some = of([*HOUR, 0, 0, *HOUR])
    found, never = (replay(some, one) for one in (PLAIN, replace(PLAIN, kept_after_s=1e9)))
    assert never.before_s - found.before_s == pytest.approx(PLAIN.requirements_s - PLAIN.environment_s, abs=5.0)


def test_a_later_attempt_installs_again_where_no_earlier_one_trained_for_long_enough() -> None:
    short_s = 100.0
    found = replay(trace("synthetic", 1, short_s, [1] + [0] * 20 + [1] * 6), ABRUPT)
    assert (found.attempts, found.unused_s) == (2, 0.0)
    assert 0 < found.lost_s < PLAIN.kept_after_s
    assert found.before_s == pytest.approx(2 * BEGAN_S, abs=10.0)


def test_a_loss_without_notice_costs_an_interval_and_a_commit_at_most() -> None:
    found = replay(of([*HOUR, 0, 0, *HOUR]), ABRUPT)
    assert (found.status, found.attempts) == ("SUCCEEDED", 2)
    assert 0 < found.lost_s <= PLAIN.save_every_s * 1.5 + PLAIN.save_s + PLAIN.commit_s


def test_peers_of_a_node_that_falls_silent_are_paid_until_its_silence_is_over() -> None:
    heard, unheard = (replay(of([2] * 12 + [1] * 6, nodes=2), one) for one in (ABRUPT, SILENT))
    assert heard.progress_s == unheard.progress_s
    later_s = (unheard.after_s - heard.after_s) / 2
    assert 180.0 - 60.0 < later_s < 180.0 + 2 * 60.0


def test_a_place_that_is_gone_within_a_minute_is_paid_and_brings_nothing() -> None:
    found = replay(trace("synthetic", 1, 30.0, [1, *[0] * 60]), ABRUPT)
    assert found.progress_s == 0.0
    assert found.unused_s == found.paid_s > 0.0


def test_what_is_paid_is_the_sum_of_its_parts() -> None:
    found = replay(of([4] * 12 + [3, 0] + [4] * 18 + [0], nodes=4), Assumed(without_notice=0.5))
    parts_s = found.progress_s + found.lost_s + found.before_s + found.paused_s + found.after_s + found.unused_s
    assert parts_s == pytest.approx(found.paid_s)


def test_the_same_seed_has_the_same_figures_and_quiet_times_change_none() -> None:
    some = of([2] * 18 + [1] * 3 + [2] * 12, nodes=2)
    found: list[Replayed] = [replay(some, Assumed(), seed=3, leaps=leaps) for leaps in (True, True, False)]
    assert found[0] == found[1]
    for name in ("paid_s", "progress_s", "before_s", "after_s"):
        assert getattr(found[2], name) == pytest.approx(getattr(found[0], name), abs=5.0), name


# The next launch


def test_a_new_attempt_is_launched_within_a_second_beyond_calls_and_delivery() -> None:
    found = relaunched(2)
    assert len(found.all_s) == 2
    assert not found.wrong, found
    assert all(0 < beyond_s < whole_s for beyond_s, whole_s in zip(found.beyond_s, found.all_s, strict=True))


def test_a_launch_that_comes_late_is_told() -> None:
    found = Relaunched(all_s=[1.0] * 90 + [9.0] * 10, calls_s=[0.5] * 100, stream_s=0.3)
    assert percentile(found.beyond_s, 0.5) == pytest.approx(0.2)
    assert "8.20 s beyond" in found.wrong


# The page

SOME = of([*HOUR, 0])
DONE = Replayed(
    paid_s=1000.0, progress_s=990.0, lost_s=0.0, before_s=10.0, paused_s=0.0, after_s=0.0, unused_s=0.0, attempts=1,
    status="SUCCEEDED", problem="",
)  # fmt: skip


def known(**changed: Any) -> dict[str, dict[str, Replayed]]:
    nothing: dict[str, dict[str, Replayed]] = {name: {} for name in CASES}
    return nothing | {case: {SOME.name: replace(DONE, **changed)} for case in (TABLE, NOTICED)}


def test_a_page_has_every_figure_of_a_trace() -> None:
    told = page.page([SOME], known(), None)
    assert "| synthetic | 1.00 h | 1 | 1 | **0.9900** | **0.9900** |" in told
    assert page.broken([SOME], known(), None) == []


@pytest.mark.parametrize(
    ("place", "progress_s", "is_told"), [(0, 965.0, False), (0, 964.0, True), (1, 980.0, False), (1, 979.0, True)]
)
def test_too_little_progress_is_told_and_the_hardest_trace_may_have_less(
    place: int, progress_s: float, is_told: bool
) -> None:
    other = replace(SOME, name="other")
    order = [SOME, other] if place == 0 else [other, SOME]
    assert bool(page.broken(order, known(progress_s=progress_s), None)) == is_told


def test_a_job_that_failed_is_told_whatever_it_has_reached() -> None:
    assert page.broken([SOME], known(status="FAILED", problem="NodeLost: no"), None) == ["synthetic: NodeLost: no"] * 2


def test_too_little_with_losses_that_nobody_announced_is_on_the_page_and_fails_nothing() -> None:
    figures = known()
    figures[TABLE] = {SOME.name: replace(DONE, progress_s=900.0)}
    assert "- With one loss in ten without notice: synthetic: 0.9000" in page.page([SOME], figures, None)
    assert page.broken([SOME], figures, None) == []


def test_a_trace_that_was_not_replayed_is_left_out() -> None:
    told = page.page([SOME], {name: {} for name in CASES}, None)
    assert "**" not in told.partition("## What is real")[0]
