"""Whatever happens to an attempt, in whatever order it is heard of: its end has the name that an oracle with full knowledge gives it."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.properties.rounds import DEEP, ROUNDS, numbers, play
from tests.properties.verdict_nodes import STALL_S, Node
from tests.properties.verdict_world import VerdictWorld

RANK = st.integers(0, 3)
BREAKS_S = st.sampled_from([0.01, 0.01, 0.3, 2.0, 30.0, 600.0, math.inf])
"""After a peer is gone: gloo takes milliseconds, NCCL ten minutes, and some hang."""
EC2_S = st.sampled_from([0.5, 5.0, 60.0, 240.0, math.inf])
THEN_S = st.sampled_from([0.0, 1.0, 5.0, 20.0, 61.0])
PAIRS = list(itertools.permutations(("fails", "is lost", "is ordered"), 2))
PAIRS_EACH = 1000 if DEEP else 60
HOURS_S = 4 * 3600.0


class Attempt(RuleBasedStateMachine):
    """One attempt after the other."""

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

    @rule(which=RANK, breaks_s=BREAKS_S, then_s=THEN_S)
    def the_code_fails(self, which: int, breaks_s: float, then_s: float) -> None:
        self.world.fail(self.node(which), breaks_s)
        self.world.run(then_s)

    @rule(which=RANK, breaks_s=BREAKS_S, ec2_s=EC2_S, then_s=THEN_S)
    def a_node_is_lost(self, which: int, breaks_s: float, ec2_s: float, then_s: float) -> None:
        self.world.lose(self.node(which), breaks_s, ec2_s)
        self.world.run(then_s)

    @rule(
        which=RANK,
        error=st.sampled_from(["Interrupted", "Interrupted", "DeadlineReached"]),
        breaks_s=BREAKS_S,
        reclaimed=st.booleans(),
        then_s=THEN_S,
    )
    @precondition(lambda self: self.world.seed % 4 < 3)
    def a_node_asks_for_an_order(self, which: int, error: str, breaks_s: float, reclaimed: bool, then_s: float) -> None:
        """One, or several within seconds of each other."""
        self.world.notice(self.node(which), error, breaks_s, reclaimed=reclaimed)
        self.world.run(then_s)

    @rule(breaks_s=BREAKS_S, then_s=THEN_S)
    @precondition(lambda self: self.world.seed % 4 == 0)
    def the_attendant_orders(self, breaks_s: float, then_s: float) -> None:
        """In the attempts whose time is over."""
        for node in self.world.all:
            node.breaks_s = breaks_s
        self.world.order_by_attendant("DeadlineReached")
        self.world.run(then_s)

    @rule(copies=st.integers(0, 3))
    def whoever_gives_the_next_order_dies_meanwhile(self, copies: int) -> None:
        self.world.table.copies_left = copies

    @rule()
    @precondition(lambda self: len(self.world.training()) == self.world.nodes)
    def the_training_ends(self) -> None:
        self.world.finish()

    @rule(then_s=THEN_S)
    @precondition(lambda self: self.world.seed % 3 == 0)
    def the_trainers_hang(self, then_s: float) -> None:
        """In some attempts: nothing else ends them, so there is nothing left to find in what comes after."""
        self.world.hang()
        self.world.run(then_s)

    @rule(which=RANK, seconds=st.sampled_from([5.0, 40.0, 90.0]))
    def a_node_freezes_for_a_while(self, which: int, seconds: float) -> None:
        """One that is not silent already: several troubles in a row are a silence that proves something."""
        if self.node(which) in self.world.silent():
            return
        self.node(which).frozen_until = max(self.node(which).frozen_until, self.world.now + seconds)
        self.world.run(2 * seconds)

    @rule(which=RANK, seconds=st.sampled_from([0.0, 0.0, 2.0, 20.0]))
    def reports_are_late(self, which: int, seconds: float) -> None:
        self.node(which).slow_s = seconds

    @rule(seconds=st.sampled_from([20.0, 200.0, 900.0]))
    def the_table_is_away_from_everybody(self, seconds: float) -> None:
        self.world.table.away_until = self.world.now + seconds

    @rule(seconds=st.sampled_from([20.0, 90.0]))
    def the_table_is_away_from_the_nodes(self, seconds: float) -> None:
        """And then from nobody for a while."""
        if self.world.silent():
            return
        for node in self.world.all:
            node.slow_s = 0.0
        self.world.table.nodes_away_until = self.world.now + seconds
        self.world.run(seconds + 60)

    @rule(seconds=st.sampled_from([60.0, 200.0, 900.0]))
    def the_attendant_is_dead(self, seconds: float) -> None:
        self.world.attendant_dead_until = self.world.now + seconds

    @rule(late_s=st.sampled_from([0.0, 0.0, 20.0, 120.0]), lost=st.booleans())
    def the_streams_records_are_late_or_given_up(self, late_s: float, lost: bool) -> None:
        self.world.stream_late_s, self.world.records_lost = late_s, lost

    @rule(which=RANK)
    def ec2_does_not_know_a_node_in_one_look(self, which: int) -> None:
        """New ones it may not know for longer; of this one somebody has heard."""
        if self.node(which).heard_at > 0:
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
            if self.world.verdict is not None:  # the next attempt of the job
                self.launch(self.world.nodes, self.world.seed + 1, 90.0)

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
@pytest.mark.parametrize("number", numbers(ROUNDS, quick=2))
def test_the_end_has_the_name_that_the_oracle_gives_it(number: int) -> None:
    play(number, Attempt)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("causes", PAIRS, ids=" then ".join)
def test_of_two_causes_the_one_that_explains_the_other_names_the_end(causes: tuple[str, str]) -> None:
    """Two nodes, seconds apart, often while nobody looks."""
    for seed in range(PAIRS_EACH):
        chance = random.Random(seed)
        world = VerdictWorld(chance.choice([2, 3, 4]), seed)
        world.run(chance.uniform(70, 200))
        world.attendant_dead_until = world.now + chance.choice([0.0, 100.0, 200.0])
        world.records_lost = chance.random() < 0.3
        breaks_s = chance.choice([0.01, 0.3, 30.0, math.inf])
        for cause, node in zip(causes, chance.sample(world.all, 2), strict=True):
            match cause:
                case "fails":
                    world.fail(node, breaks_s)
                case "is lost":
                    world.lose(node, breaks_s, chance.choice([0.5, 60.0, math.inf]))
                case "is ordered":
                    world.notice(node, "Interrupted", breaks_s, reclaimed=chance.random() < 0.5)
            world.run(chance.choice([0.5, 3.0, 10.0, 40.0, 61.0]))
        world.run(HOURS_S)
        assert world.verdict is not None, seed
        assert world.wrong == [], seed


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("copies", range(4))
def test_an_order_reaches_every_node_although_whoever_gave_it_died_between_two_copies(seed: int, copies: int) -> None:
    """Within the next tick of the clock; all stop, though trainers hang where a peer has gone."""
    world = VerdictWorld(4, seed)
    world.run(90 + 7 * seed)
    world.records_lost, world.table.copies_left = seed % 2 == 0, copies  # then only the clock wakes the attendant
    world.notice(world.all[seed % 4], "Interrupted", math.inf, reclaimed=False)
    world.run(2 * 63 + 5 + 1 + 5)
    assert [node.id for node in world.all if node.obeys is None] == []
    assert world.wrong == []


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


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("nodes", [1, 4])
def test_a_training_that_hangs_is_stalled_once_its_minutes_are_over_and_no_sooner(seed: int, nodes: int) -> None:
    """Whatever is away, dead or late meanwhile for a while."""
    world = VerdictWorld(nodes, seed)
    world.run(90 + world.job.timing.warm_up_s)
    world.run(world.chance.uniform(0, 4000))
    world.hang()
    since = world.now
    world.attendant_dead_until = world.now + world.chance.choice([0.0, 600.0])
    world.table.away_until = world.now + world.chance.choice([0.0, 300.0])
    world.run(STALL_S - 1)
    assert world.table.created is None
    world.run(60 + 30 + 120 + 62 + 30)  # the clock, a report, the last commits, the clock, and what writes take
    assert world.wrong == []
    assert world.verdict is not None
    assert (world.verdict.error, world.ended_at - since > STALL_S) == ("Stalled", True)


@pytest.mark.parametrize("seed", range(20))
def test_a_training_that_goes_on_is_never_stalled_however_long_nobody_hears_of_it(seed: int) -> None:
    world = VerdictWorld(2, seed)
    world.run(3000)
    for _ in range(6):
        world.table.away_until = world.now + 2 * STALL_S
        world.run(2 * STALL_S + 400)
    assert world.wrong == []
    assert world.table.created is None
    assert world.verdict is None
