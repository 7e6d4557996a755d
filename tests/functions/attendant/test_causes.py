"""What the attendant calls the cause, where several things went wrong at once: the one that explains the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from attendant.facts import FAILING_S, AttemptFacts
from attendant.policy import Action, judge
from aws.facts import Given, Instance
from contract.errors import NEW_ATTEMPT
from contract.orders import Order
from contract.reports import Exit, Phase
from tests.builders import JOB, NOW
from tests.functions.attendant.attempts import FOUR, LATER, ORDER, TRAINING, ended, heard

RESET: dict[str, Any] = {"tail": ("step 7", "RuntimeError: Connection reset by peer", "")}
ALONE = replace(TRAINING, nodes={0: heard(0, age_s=5), 1: ended(1, 3, ago_s=20, tail=("ValueError: x",))})
"""Rank 1 failed, and rank 0 was heard after it."""
PEERS = {rank: ended(rank, 1, ago_s=10, **RESET) for rank in (0, 1, 3)}
"""Of rank 2, who all failed at the same second."""


def gone(facts: AttemptFacts, rank: int, state: str = "shutting-down") -> dict[str, Instance]:
    instances = dict(facts.instances or {})
    id_ = facts.ids[rank]
    return {**instances, id_: replace(instances[id_], state=state, why="Server.InternalError")}


# An error alone


def test_a_node_that_fails_by_itself_while_the_others_go_on_fails_the_gang_with_code_lines_and_log() -> None:
    verdict = judge(ALONE, now=LATER)
    assert (verdict.action, verdict.error) == (Action.FAIL, "TrainingFailed")
    assert "rank 1: the command exited with code 3" in verdict.reason
    assert "ValueError: x" in verdict.reason
    assert "job-1/1/1" in verdict.reason


@pytest.mark.parametrize("age_s", [21.0, 20.0, 19.0, 18.5])
def test_an_error_is_nobodys_before_the_others_were_heard_after_it(age_s: float) -> None:
    verdict = judge(replace(ALONE, nodes={**ALONE.nodes, 0: heard(0, age_s=age_s)}), now=LATER)
    assert verdict.action is Action.AWAIT
    assert verdict.awaits == "i-1"
    assert (
        verdict.reason == "rank 1 exited with code 3; a later report of rank 0 will show whether the error is its own"
    )


def test_an_error_waits_for_a_node_whose_own_process_failed_while_torchrun_still_ends_the_others() -> None:
    failing = heard(0, age_s=1, timeline={"started": NOW, "failed": NOW - 2})
    assert judge(replace(ALONE, nodes={**ALONE.nodes, 0: failing}), now=LATER).action is Action.AWAIT
    first = ended(0, 75, ago_s=22, at=NOW - 2)
    verdict = judge(replace(ALONE, nodes={**ALONE.nodes, 0: first}), now=LATER)
    assert verdict.reason.startswith("rank 0: the command exited with code 75. Rank 1 exited with code 3 after it.")


def test_an_error_waits_no_longer_for_such_a_node_than_torchrun_can_need() -> None:
    nodes = {
        0: heard(0, age_s=1, timeline={"started": NOW, "failed": NOW - 2}),
        1: ended(1, 3, ago_s=FAILING_S + 1),
    }
    verdict = judge(replace(ALONE, nodes=nodes), now=LATER)
    assert (verdict.action, verdict.error) == (Action.FAIL, "TrainingFailed")


def test_an_error_that_its_node_always_calls_new_outlives_no_deadline() -> None:
    """The code of a job can write its node's report anew, dated ahead, so that nobody was ever heard after it."""
    nodes = {0: heard(0, phase=Phase.SAVING, outcome=Exit(code=1), timeline={"started": NOW}, age_s=0.0), 1: heard(1)}
    facts = replace(TRAINING, nodes=nodes)
    assert judge(facts, now=JOB.deadline - 1000).action is Action.AWAIT
    over = judge(facts, now=JOB.deadline + 181)
    assert (over.action, over.error) == (Action.FAIL, "DeadlineReached")


def test_an_error_of_a_single_node_is_its_own_at_once() -> None:
    single = replace(TRAINING, job=replace(JOB, nodes=1), ids=("i-0",), nodes={0: ended(0, 1, ago_s=0)})
    assert judge(single, now=LATER).error == "TrainingFailed"


def test_an_error_is_told_before_the_last_commits_are_made() -> None:
    """The outcome counts; the exit comes minutes later, when everything is saved."""
    saving = heard(1, age_s=20, phase=Phase.SAVING, outcome=Exit(code=3), timeline={"started": NOW})
    assert judge(replace(ALONE, nodes={**ALONE.nodes, 1: saving}), now=LATER).error == "TrainingFailed"


def test_when_an_error_came_is_told_by_its_first_report_however_late_the_last_one_is() -> None:
    late = ended(1, 3, ago_s=1)
    late = replace(late, report=replace(late.report, failed_s=60.0))
    assert judge(replace(ALONE, nodes={0: heard(0, age_s=20), 1: late}), now=LATER).error == "TrainingFailed"


def test_code_that_could_not_start_failed_by_itself_whatever_the_others_do() -> None:
    reason = "rank 0: requirements.txt cannot be installed"
    setup = ended(0, 1, ago_s=5, started=False, error="TrainingFailed", reason=reason)
    verdict = judge(replace(TRAINING, nodes={0: setup}), now=LATER)
    assert verdict.error == "TrainingFailed"
    assert verdict.reason.startswith(
        "rank 0 could not begin its command.\nIts nodes said:\n  rank 0: requirements.txt cannot"
    )


def test_of_two_errors_the_first_by_s3s_clock_is_the_cause_whatever_the_nodes_clocks_say() -> None:
    first = ended(1, 3, ago_s=20, at=NOW + 300, reason="bad data")
    both = replace(TRAINING, nodes={0: ended(0, 1, ago_s=15, at=NOW, reason="peer left", **RESET), 1: first})
    verdict = judge(both, now=LATER)
    assert verdict.reason.startswith(
        "rank 1: the command exited with code 3. Rank 0 exited with code 1 after it.\nIts nodes said:\n  rank 1: bad data\n"
        "  rank 0: RuntimeError: Connection reset by peer\n"
    )


def test_of_two_errors_in_one_second_the_nodes_clocks_decide() -> None:
    nodes = {
        0: ended(0, 1, ago_s=21, at=NOW + 0.2, reason="peer left"),
        1: ended(1, 3, ago_s=20, at=NOW + 0.1, reason="bad"),
    }
    assert judge(replace(TRAINING, nodes=nodes), now=LATER).reason.startswith("rank 1: the command exited with code 3.")


def test_a_node_that_powered_itself_off_after_its_error_is_not_lost() -> None:
    facts = replace(ALONE, instances=gone(TRAINING, 1))
    assert judge(facts, now=LATER).error == "TrainingFailed"


def test_a_node_that_is_gone_between_its_error_and_its_last_report_is_not_lost() -> None:
    told = heard(1, age_s=20, phase=Phase.SAVING, outcome=Exit(code=137), timeline={"started": NOW})
    facts = replace(TRAINING, nodes={0: heard(0, age_s=5), 1: told}, instances=gone(TRAINING, 1))
    assert judge(facts, now=LATER).error == "TrainingFailed"


def test_a_node_that_is_lost_after_it_was_heard_did_not_cause_the_error() -> None:
    verdict = judge(replace(ALONE, instances=gone(TRAINING, 0)), now=LATER)
    assert verdict.error == "TrainingFailed"


# A loss explains what its peers died of


@pytest.mark.parametrize("state", ["shutting-down", "terminated", "stopping", "stopped"])
def test_a_lost_node_explains_the_errors_of_its_peers_and_the_cause_names_both(state: str) -> None:
    facts = replace(FOUR, nodes={**PEERS, 2: heard(2, age_s=12)}, instances=gone(FOUR, 2, state))
    verdict = judge(facts, now=LATER)
    assert verdict.error == "NodeLost"
    assert verdict.reason.startswith(f"rank 2 (i-2) is {state} before its work was done (Server.InternalError).")
    assert "Ranks 0, 1, 3 exited with code 1 after it." in verdict.reason
    assert "\n  rank 0: RuntimeError: Connection reset by peer" in verdict.reason


def test_a_host_that_vanished_while_ec2_calls_it_running_is_lost_once_its_silence_is_too_long() -> None:
    vanished = replace(FOUR, nodes={**PEERS, 2: heard(2, age_s=12)})
    assert judge(vanished, now=LATER).action is Action.AWAIT
    later = {rank: replace(node, age_s=node.age_s + 170) for rank, node in vanished.nodes.items()}
    verdict = judge(replace(vanished, nodes=later), now=LATER)
    assert verdict.error == "NodeLost"
    assert "rank 2 (i-2) has been silent for 182 s" in verdict.reason
    assert "Ranks 0, 1, 3 exited with code 1 after it" in verdict.reason


def test_a_host_that_vanished_before_it_ever_reported_is_lost_after_its_boot_allowance() -> None:
    never = replace(FOUR, nodes=PEERS)
    assert judge(never, now=NOW + 899).action is Action.AWAIT
    assert judge(never, now=NOW + 901).error == "NodeLost"


def test_a_node_that_calls_itself_lost_explains_errors_that_came_after_it() -> None:
    nodes = {
        0: ended(0, 1, ago_s=19, at=NOW, **RESET),
        1: ended(1, 1, ago_s=20, at=NOW + 9, error="NodeLost", reason="no disk"),
    }
    verdict = judge(replace(TRAINING, nodes=nodes), now=LATER)
    assert verdict.error == "NodeLost"
    assert verdict.reason.startswith("rank 1 ended with NodeLost. Rank 0 exited with code 1 after it.")
    assert "\n  rank 1: no disk\n" in verdict.reason


def test_a_node_that_calls_itself_lost_long_after_an_error_does_not_explain_it() -> None:
    nodes = {0: ended(0, 3, ago_s=60), 1: ended(1, 1, ago_s=20, error="NodeLost", reason="trained, but not committed")}
    assert judge(replace(TRAINING, nodes=nodes), now=LATER).error == "TrainingFailed"


def test_an_error_waits_no_longer_than_the_silence_that_is_allowed_unless_nobody_looked() -> None:
    facts = replace(TRAINING, nodes={0: heard(0, age_s=200), 1: ended(1, 1, ago_s=190)})
    assert judge(facts, now=LATER).error == "NodeLost"
    assert judge(replace(facts, gaps_s=(5.0, 900.0)), now=LATER).action is Action.AWAIT


# An order explains the exits that it caused


@pytest.mark.parametrize("error", ["DeadlineReached", "Interrupted"])
def test_an_order_explains_the_error_of_a_peer_that_had_not_seen_it(error: str) -> None:
    order = replace(ORDER, error=error)
    nodes = {0: ended(0, 143, ago_s=9, ordered=True, error=error), 1: ended(1, 1, ago_s=10, **RESET)}
    verdict = judge(replace(TRAINING, nodes=nodes, order=Given(order=order, age_s=12)), now=LATER)
    assert verdict.error == error


def test_the_others_get_their_time_after_an_order_also_when_a_peer_broke() -> None:
    facts = replace(TRAINING, nodes={0: heard(0), 1: ended(1, 1, ago_s=10)}, order=Given(order=ORDER, age_s=12))
    assert judge(facts, now=NOW + 100).action is Action.HEARTBEAT


def test_an_order_that_came_after_an_error_does_not_explain_it() -> None:
    order = replace(ORDER, error="DeadlineReached")
    verdict = judge(replace(ALONE, order=Given(order=order, age_s=10)), now=LATER)
    assert verdict.error == "TrainingFailed"


def test_an_order_that_only_a_node_knows_of_explains_what_its_peers_died_of() -> None:
    own: Order = replace(ORDER, error="DeadlineReached", author="rank 0")
    nodes = {0: heard(0, age_s=2, order=own, ordered_s=9), 1: ended(1, 1, ago_s=10, **RESET)}
    verdict = judge(replace(TRAINING, nodes=nodes), now=NOW + 100)
    assert (verdict.action, verdict.order) == (Action.ORDER, own), "it becomes the order of all"
    last = ended(0, 143, ago_s=2, ordered=True, error="DeadlineReached")
    nodes[0] = replace(last, report=replace(last.report, order=own, ordered_s=9))
    assert judge(replace(TRAINING, nodes=nodes), now=NOW + 100).error == "DeadlineReached"


def test_an_order_that_a_node_gave_itself_before_its_peers_failed_explains_them_however_late_it_became_the_order_of_all() -> (
    None
):
    nodes = {0: heard(0, age_s=2, order=ORDER, ordered_s=40), 1: ended(1, 1, ago_s=30, **RESET)}
    facts = replace(TRAINING, nodes=nodes, order=Given(order=ORDER, age_s=0.5))
    assert judge(facts, now=NOW + 100).action is Action.HEARTBEAT


def test_an_order_by_which_a_node_left_explains_what_its_peers_died_of_though_another_became_the_order_of_all() -> None:
    """It could not tell anybody at the time, and meanwhile there was another."""
    own = replace(ORDER, error="Interrupted", author="rank 0")
    last = ended(0, 143, ago_s=30, ordered=True, error="Interrupted")
    left = replace(last, report=replace(last.report, order=own, ordered_s=12))
    nodes = {0: left, 1: ended(1, 1, ago_s=30, **RESET)}
    late = Given(order=replace(ORDER, error="DeadlineReached"), age_s=10)
    assert judge(replace(TRAINING, nodes=nodes, order=late), now=NOW + 100).error == "DeadlineReached"


def test_an_order_that_a_node_gave_itself_after_an_error_does_not_explain_it() -> None:
    nodes = {0: heard(0, age_s=2, order=ORDER, ordered_s=3), 1: ended(1, 3, ago_s=30)}
    for given in (None, Given(order=ORDER, age_s=0.5)):
        verdict = judge(replace(TRAINING, nodes=nodes, order=given), now=NOW + 100)
        assert (verdict.error, "rank 1" in verdict.reason) == ("TrainingFailed", True)


def test_a_node_that_works_on_without_the_order_of_all_is_told_again_and_one_that_has_it_is_not() -> None:
    nodes = {0: heard(0, order=ORDER), 1: ended(1, 0), 2: heard(2)}
    facts = replace(FOUR, nodes=nodes, order=Given(order=ORDER, age_s=60))
    assert facts.uninformed == [2, 3]
    assert replace(facts, order=None).uninformed == []


def test_nodes_that_go_away_after_an_order_are_its_effect_and_the_cause_names_both() -> None:
    nodes = {0: ended(0, 1, ago_s=10, **RESET), 1: heard(1, age_s=12)}
    facts = replace(TRAINING, nodes=nodes, order=Given(order=ORDER, age_s=60), instances=gone(TRAINING, 1))
    verdict = judge(facts, now=NOW + 100)
    assert verdict.error == "Interrupted"
    assert "rank 1 (i-1) is shutting-down" in verdict.reason
    assert "A spot notice came." in verdict.reason


# Nodes that live and get nowhere


@pytest.mark.parametrize(
    ("phase", "setting"),
    [
        (Phase.RESTORING, "restore_allowance_s"),
        (Phase.PREPARING, "prepare_allowance_s"),
        (Phase.WAITING, "meet_allowance_s"),
        (Phase.CHECKING, "gate_allowance_s"),
        (Phase.SAVING, "save_allowance_s"),
    ],
)
def test_a_phase_that_takes_longer_than_its_allowance_stalls_the_attempt(phase: Phase, setting: str) -> None:
    most = getattr(JOB.timing, setting)
    within = heard(1, age_s=10, phase=phase, phase_s=most - 11)
    assert judge(replace(TRAINING, nodes={0: heard(0), 1: within}), now=LATER).action is Action.HEARTBEAT
    beyond = heard(1, age_s=10, phase=phase, phase_s=most - 9, note="pip")
    verdict = judge(replace(TRAINING, nodes={0: heard(0), 1: beyond}), now=LATER)
    assert (verdict.error, verdict.error in [one.__name__ for one in NEW_ATTEMPT]) == ("Stalled", True)
    assert f"{phase.value} for {most + 1:.0f} s (allowed: {most:.0f} s, by {setting})." in verdict.reason
    assert verdict.reason.endswith("\nIts nodes said:\n  rank 1: pip")


def test_a_training_may_take_as_long_as_the_job() -> None:
    nodes = {rank: heard(rank, phase_s=1e6) for rank in (0, 1)}
    assert judge(replace(TRAINING, nodes=nodes), now=LATER).action is Action.HEARTBEAT


def test_one_rank_may_go_on_after_another_ended_but_not_for_ever() -> None:
    most = JOB.timing.uneven_allowance_s
    facts = replace(TRAINING, nodes={0: ended(0, ago_s=most - 1), 1: heard(1)})
    assert judge(facts, now=LATER).action is Action.HEARTBEAT
    verdict = judge(replace(facts, nodes={0: ended(0, ago_s=most + 1), 1: heard(1)}), now=LATER)
    assert verdict.error == "Stalled"
    assert "rank 0 ended 7201 s ago, and rank 1 still runs (allowed: 7200 s, by uneven_allowance_s)" in verdict.reason


# What a node writes


@pytest.mark.parametrize("name", ["Lambda.Unknown", "States.ALL", "x" * 300, "Nonsense"])
def test_a_name_that_a_node_made_up_is_no_error_of_the_machine(name: str) -> None:
    own = replace(ALONE, nodes={**ALONE.nodes, 1: ended(1, 3, ago_s=20, error=name)})
    assert judge(own, now=LATER).error == "TrainingFailed"
    order = replace(ORDER, error=name)
    ordered = {rank: ended(rank, 1, ordered=True, error=name) for rank in (0, 1)}
    assert (
        judge(replace(ALONE, order=Given(order=order, age_s=1000), nodes=ordered), now=LATER).error == "TrainingFailed"
    )
