"""The console of a node that never reported: what of it reaches a person, and that it never decides anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from attendant import console
from attendant.policy import judge
from tests.builders import JOB, rung
from tests.fakes.faults import Kind, Mishap
from tests.functions.attendant.attempts import LATER, TRAINING, heard, instance
from tests.properties.world import World

ROOT = Path(__file__).parents[3]
BOOT = [f"[   {n}.000000] kernel: line {n}" for n in range(100)]
ALLOWANCE = TRAINING.job.timing.boot_allowance_s


# What is shown


def test_the_last_forty_lines_are_shown() -> None:
    assert console.last_lines("\n".join(BOOT)) == tuple(BOOT[-40:])


def test_the_shutdown_behind_user_datas_last_word_is_left_out() -> None:
    ours = "cloud-init[1234]: trainyard: could not fetch s3://assets/agent.zip"
    last = "cloud-init[1234]: trainyard: powering off"
    shutdown = [f"[  OK  ] Stopped target number {n}." for n in range(60)]
    shown = console.last_lines("\n".join([*BOOT, ours, last, *shutdown]))
    assert shown[-2:] == (ours, last)
    assert len(shown) == 40


def test_user_data_still_says_that_last_word() -> None:
    script = (ROOT / "node/user_data.sh").read_text()
    assert 'say() { echo "trainyard: $*" >&2; }' in script
    assert f'say "{console.LAST_OF_OURS.removeprefix("trainyard: ")}"' in script


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;31mFailed\x1b[0m to start\r", "Failed to start"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bplain", "plain"),
        (" 10%\r 20%\r 30%", " 30%"),
        ("a\x00b\x07c\x9bd", "a b c d"),
        ("txt.\u202eexe", "txt. exe"),
        ("a\u2028b", "a b"),
        ("x" * 5000, "x" * 200),
        ("GET /a?X-Amz-Signature=0123abcd&b=1", "GET /a?X-Amz-Signature=***&b=1"),
        ("key AKIAIOSFODNN7EXAMPLE here", "key *** here"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_what_steers_a_terminal_or_signs_a_request_is_not_shown(raw: str, shown: str) -> None:
    assert console.last_lines(raw) == (shown,)


@pytest.mark.parametrize("output", ["", "\n\n \r\n", "\x1b[2J"])
def test_without_lines_a_person_learns_how_to_ask_again(output: str) -> None:
    quoted = console.quote_console("i-0", "eu-central-1", output)
    assert "aws ec2 get-console-output --region eu-central-1 --instance-id i-0" in quoted


# When it is asked for


def test_only_a_node_that_never_reported_is_asked_about() -> None:
    gone = {"i-0": instance(0), "i-1": instance(1, "terminated")}
    assert judge(replace(TRAINING, instances=gone), now=LATER).unheard == ()
    assert judge(replace(TRAINING, instances=gone, nodes={0: heard(0)}), now=LATER).unheard == (1,)
    assert judge(replace(TRAINING, nodes={0: heard(0)}), now=TRAINING.launched_at + 1).unheard == ()


def test_a_console_is_said_and_changes_nothing_else_about_a_verdict() -> None:
    lost = replace(TRAINING, nodes={0: heard(0)}, instances={"i-0": instance(0), "i-1": instance(1, "terminated")})
    bare = judge(lost, now=LATER)
    told = judge(replace(lost, console={1: console.quote_console("i-1", "r", "no Python here")}), now=LATER)
    assert replace(told, reason="") == replace(bare, reason="")
    assert "It never reported. Its console ended with:\n  no Python here\n" in told.reason


def silence(world: World) -> None:
    for node in world.living():
        node.silent = True


@pytest.fixture
def world() -> Iterator[World]:
    """Two nodes that boot and say nothing."""
    made = World()
    made.run(30)
    silence(made)
    yield made
    made.close()


def list_consoles_read(world: World) -> list[str]:
    return [call.params["InstanceId"] for call in world.aws.calls if call.operation == "GetConsoleOutput"]


def nodes(world: World, **fields: str) -> None:
    for node in world.living():
        for name, value in fields.items():
            setattr(node.machine, name, value)


def failures(world: World) -> list[str]:
    """What the attendant told Train of attempts that failed."""
    return [str(call.params["cause"]) for call in world.aws.calls if call.operation == "SendTaskFailure"]


def cause(world: World) -> str:
    world.run(ALLOWANCE + 120)
    (said,) = failures(world)
    return said


def test_the_cause_of_a_node_that_never_came_up_ends_with_its_console(world: World) -> None:
    nodes(world, console="cloud-init: trainyard: no Python 3.10 or later on this image")
    assert "no Python 3.10 or later on this image" in cause(world)
    assert len(list_consoles_read(world)) == 1


def test_what_ec2_kept_is_shown_where_the_type_gives_no_newest_lines(world: World) -> None:
    nodes(world, kept="kept at the boot")
    for node in world.living():
        node.machine.request["InstanceType"] = "p3.2xlarge"
    assert "kept at the boot" in cause(world)


@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.THROTTLED, Kind.LOST, Kind.UNREACHABLE, Kind.ERROR])
def test_a_console_that_cannot_be_had_does_not_keep_a_lost_node_from_being_lost(world: World, kind: Kind) -> None:
    nodes(world, console="never seen")
    world.run(ALLOWANCE)
    for later in range(10):
        world.arm("attendant", Mishap("ec2:GetConsoleOutput", fault=kind, times=100), after=later)
    said = cause(world)
    assert "It never reported. EC2 had no console output of it" in said
    assert "never seen" not in said


def test_a_cluster_that_trains_is_never_asked_for_its_console() -> None:
    world = World()
    world.run(ALLOWANCE + 120)
    assert list_consoles_read(world) == []
    world.close()


# Bare metal


def test_bare_metal_has_longer_to_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.properties.world.LADDER", (rung(instance_type="g4dn.metal"),))
    world = World()
    world.run(30)
    silence(world)
    world.run(2 * ALLOWANCE)
    assert failures(world) == []
    world.run(JOB.timing.metal_boot_allowance_s - 2 * ALLOWANCE + 60)
    (said,) = failures(world)
    assert f"(allowed: {JOB.timing.metal_boot_allowance_s:.0f} s)" in said
    world.close()


@pytest.mark.parametrize(
    ("instance_type", "metal"),
    [("m5.metal", True), ("m7i.metal-24xl", True), ("u-6tb1.metal", True), ("m5.large", False), ("metal.large", False)],
)
def test_bare_metal_is_told_by_the_size(instance_type: str, metal: bool) -> None:
    timing = JOB.timing
    assert timing.boot_allowance_of(instance_type) == (
        timing.metal_boot_allowance_s if metal else timing.boot_allowance_s
    )
