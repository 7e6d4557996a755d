"""Uploads and their events in any order, with any faults: at most one start a version, and none lost that was still there."""

from __future__ import annotations

import random

import pytest

from tests.fakes.executions import Execution
from tests.fakes.faults import Death, Kind, Mishap
from tests.functions.starter.account import A_DAY_S, BUCKET, DATA, Campaigns, campaign, start_of

KEYS = ((BUCKET, "uploads/drive-eu/monday/_READY"), (BUCKET, "uploads/drive-eu/tuesday/_READY"), (DATA, "eu/_READY"))
NAMES = {BUCKET: "drive-eu", DATA: "raw"}
FAULTS = (Kind.THROTTLED, Kind.ERROR, Kind.ERROR_AFTER, Kind.LOST, Kind.UNREACHABLE)


def draw_mishap(chance: random.Random) -> Mishap:
    if chance.random() < 0.5:
        return Mishap("*", chance.randint(1, 6), death=chance.choice(list(Death)))
    call = chance.choice(["dynamodb:*", "s3:*", "stepfunctions:*", "sqs:*"])
    return Mishap(call, chance.randint(1, 2), times=1000, fault=chance.choice(FAULTS))


@pytest.mark.parametrize("seed", range(40))
def test_each_version_is_started_once_at_most_and_the_last_one_of_each_object_in_any_case(
    there: Campaigns, seed: int
) -> None:
    chance = random.Random(seed)
    there.deploy({"drive-eu": campaign(), "raw": campaign(DATA, "eu/")})
    clock, versions = there.aws.clock, dict[tuple[str, str], list[str]]()

    def end_later(one: Execution) -> None:
        """Within two hours, as nobody asks any longer how a start that is over will end."""
        there.begun.append(one.name)
        clock.at(clock.now + chance.uniform(60, 7200), lambda: there.aws.states.executions.end(one, "SUCCEEDED"))

    def upload(place: tuple[str, str]) -> None:
        bucket, key = place
        version = there.write(key, bucket, bytes([chance.randint(0, 1)])).id
        versions.setdefault(place, []).append(version)
        for _ in range(chance.randint(1, 3)):
            late = chance.choice([1.0, 60.0, 3600.0, A_DAY_S]) * chance.random()
            clock.at(clock.now + late, lambda: there.tell(key, bucket, version))

    for _ in range(chance.randint(2, 8)):
        place = chance.choice(KEYS)
        clock.at(clock.now + chance.uniform(0, 7200), lambda place=place: upload(place))  # type: ignore[misc]
    if chance.random() < 0.5:
        clock.at(clock.now + chance.uniform(0, 7200), there.close)
        clock.at(clock.now + chance.uniform(7200, 14_400), there.open)
    there.aws.states.executions.began = end_later
    there.mishaps = [[draw_mishap(chance)] if chance.random() < 0.4 else [] for _ in range(60)]
    there.run(4 * A_DAY_S)

    possible = {
        start_of(version, key, bucket, NAMES[bucket]) for (bucket, key), every in versions.items() for version in every
    }
    newest = {start_of(every[-1], key, bucket, NAMES[bucket]) for (bucket, key), every in versions.items()}
    assert len(there.begun) == len(set(there.begun))
    assert newest <= set(there.begun) <= possible
    assert (there.mails, there.letters, there.aws.queue.messages) == ([], [], {})
