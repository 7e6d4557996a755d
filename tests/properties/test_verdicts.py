"""Whatever happens to an attempt, in whatever order it is heard of: its end has the name that an oracle with full knowledge gives it."""

from __future__ import annotations

import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.properties.rounds import ROUNDS, play
from tests.properties.verdict_world import Node, VerdictWorld

RANK = st.integers(0, 3)
BREAKS_S = st.sampled_from([0.01, 0.01, 0.3, 2.0, 30.0, 600.0, math.inf])
"""After a peer is gone: gloo takes milliseconds, NCCL ten minutes, and some hang."""
EC2_S = st.sampled_from([0.5, 5.0, 60.0, 240.0, math.inf])
HOURS_S = 4 * 3600.0


class Attempt(RuleBasedStateMachine):
    """One attempt."""

    @initialize(
        nodes=st.sampled_from([1, 2, 2, 3, 4, 4]),
        seed=st.integers(0, 2**32),
        seconds=st.sampled_from([5.0, 90.0, 90.0]),
    )
    def launch(self, nodes: int, seed: int, seconds: float) -> None:
        self.world = VerdictWorld(nodes, seed)
        self.world.run(seconds)

    def node(self, which: int) -> Node:
        return self.world.all[which % self.world.nodes]

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 20.0, 61.0]))
    def time_goes_on(self, seconds: float) -> None:
        self.world.run(seconds)

    @rule(which=RANK, breaks_s=BREAKS_S)
    def the_code_fails(self, which: int, breaks_s: float) -> None:
        self.world.fail(self.node(which), breaks_s)

    @rule(which=RANK, breaks_s=BREAKS_S, ec2_s=EC2_S)
    def a_node_is_lost(self, which: int, breaks_s: float, ec2_s: float) -> None:
        self.world.lose(self.node(which), breaks_s, ec2_s)

    @rule(which=RANK, error=st.sampled_from(["Interrupted", "DeadlineReached"]), breaks_s=BREAKS_S)
    def a_node_orders(self, which: int, error: str, breaks_s: float) -> None:
        self.world.give_order(error, self.node(which), breaks_s)

    @rule()
    def the_attendant_orders(self) -> None:
        self.world.give_order("DeadlineReached", None, math.inf)

    @rule()
    @precondition(lambda self: len(self.world.training()) == self.world.nodes)
    def the_training_ends(self) -> None:
        self.world.finish()

    @rule(which=RANK, seconds=st.sampled_from([5.0, 40.0, 90.0]))
    def a_node_freezes_for_a_while(self, which: int, seconds: float) -> None:
        self.node(which).frozen_until = max(self.node(which).frozen_until, self.world.now + seconds)
        self.world.run(2 * seconds)

    @rule(which=RANK, seconds=st.sampled_from([0.0, 0.0, 2.0, 20.0]))
    def reports_are_late(self, which: int, seconds: float) -> None:
        if self.world.order is None and self.world.own_order is None:
            self.node(which).slow_s = seconds

    @rule(seconds=st.sampled_from([20.0, 200.0, 900.0]))
    def s3_is_away_from_everybody(self, seconds: float) -> None:
        self.world.away_until = self.world.now + seconds

    @rule(seconds=st.sampled_from([20.0, 90.0]))
    def s3_is_away_from_the_nodes(self, seconds: float) -> None:
        """And then from nobody for a while: two such times in a row are a silence that proves something."""
        self.world.nodes_away_until = self.world.now + seconds
        self.world.run(seconds + 60)

    @rule(seconds=st.sampled_from([60.0, 200.0, 900.0]))
    def the_attendant_is_dead(self, seconds: float) -> None:
        self.world.attendant_dead_until = self.world.now + seconds

    @rule(lost=st.booleans())
    def events_are_lost(self, lost: bool) -> None:
        self.world.events_lost = lost

    @rule(which=RANK)
    def ec2_does_not_know_a_node_in_one_look(self, which: int) -> None:
        """New ones it may not know for longer; of this one somebody has heard."""
        if self.node(which).arrived_at > 0:
            self.world.forgotten.add(self.node(which).id)

    @rule()
    def ec2_does_not_answer_in_one_look(self) -> None:
        self.world.ec2_silent = True

    @rule(which=RANK, instance=st.sampled_from(["i-9", "i-0", "i-1"]), attempt=st.sampled_from([1, 2]))
    def somebody_elses_report_lies_there(self, which: int, instance: str, attempt: int) -> None:
        rank = which % self.world.nodes
        if attempt == 2 or instance != f"i-{rank}":
            self.world.lie(rank, instance, attempt)

    @invariant()
    def the_end_is_the_oracles(self) -> None:
        if hasattr(self, "world"):
            assert self.world.wrong == [], self.world.wrong

    def teardown(self) -> None:
        """Whatever happened, there is an end."""
        if not hasattr(self, "world"):
            return
        world = self.world
        for node in world.all:
            node.slow_s = 0.0
        world.run(300.0)
        world.finish()
        world.run(HOURS_S)
        assert world.wrong == [], world.wrong
        assert world.verdict is not None, "no end after four hours"


@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", range(ROUNDS))
def test_the_end_has_the_name_that_the_oracle_gives_it(number: int) -> None:
    play(number, Attempt)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("nodes", [2, 4])
def test_a_trainer_that_fails_by_itself_on_one_rank_is_judged_within_a_minute(seed: int, nodes: int) -> None:
    """While the others hang in a collective for ten minutes."""
    world = VerdictWorld(nodes, seed)
    world.run(90 + 7 * seed)
    failed_at = world.now
    world.fail(world.all[seed % nodes], math.inf)
    world.run(120)
    assert world.verdict is not None
    assert world.verdict.error == "TrainingFailed"
    assert world.ended_at - failed_at < 50
