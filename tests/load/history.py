"""What a wait costs an execution, counted on the synthesised definition with the real functions and a virtual clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from contract import items, keys
from contract.codec import decode
from contract.reports import Exit, Phase
from contract.waits import CapacityWait
from tests.archives import packed
from tests.builders import JOB, PLACE
from tests.fakes.aws import Aws
from tests.fakes.events import Event
from tests.fakes.functions import Functions, Outcome
from tests.fakes.state import kept
from tests.fakes.yard import admits, deployed, home
from tests.load.definition import Interpreted, synthesised
from tests.properties.retrying import WAIT
from tests.properties.world import Node, send

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
TWO_WEEKS = 14 * DAY
SHORT_S = 60.0
MOST_TRANSITIONS, MOST_EVENTS = 12, 80
"""That two weeks may cost more than a minute."""
NAME = "waits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """One execution, from its request to its end."""

    status: str
    waited_s: float
    """In the state that waits."""
    transitions: int
    events: int
    entered: int
    """How often the state that waits was entered."""
    tries: int
    history: dict[str, int]


@dataclass
class Yard:
    """A deployment without capacity, one execution, and the clock of the launcher, which is dead for a while."""

    aws: Aws
    functions: Functions
    dead: Sequence[tuple[float, float]]
    """Seconds after the state that waits was first entered, from and to."""
    since: float = float("inf")

    def tick(self, event: Event) -> None:
        after = self.aws.clock.now - self.since
        if not any(begin <= after < end for begin, end in self.dead):
            self.functions.invoke("launcher", event)

    def attend(self, event: Event) -> None:
        self.functions.invoke("attendant", event)

    def invoke(self, name: str, event: dict[str, object]) -> Outcome:
        return self.functions.invoke(name, event)


def waited(wait_s: float, *, tick_s: float = MINUTE, dead: Sequence[tuple[float, float]] = ()) -> Waited:
    """An execution that finds capacity once it has waited for `wait_s`, and trains without an error; `dead`: the launcher's clock."""
    aws = admits(deployed())
    yard = Yard(aws, Functions(aws), dead)
    for kind in home(aws).catalogue.kinds:
        for zone in home(aws).catalogue.zones:
            home(aws).capacity[kind, zone] = 0
    source = f"{keys.UPLOADS}{NAME}.tar.gz"
    aws.s3.write(JOB.home_bucket, source, packed("train.py"))
    request = {
        "code": f"s3://{JOB.home_bucket}/{source}",
        "command": ["python", "train.py"],
        "instance_types": ["g5.xlarge"],
        "nodes": 2,
        "region": PLACE.region,
        "max_wait_hours": 336,
    }
    run = Interpreted(NAME, aws, yard.invoke, synthesised(), request)
    with yard.functions.installed():
        aws.events.every(tick_s, yard.tick)
        run.start()
        _until(aws, run, WAIT, 2 * HOUR)
        began = yard.since = aws.clock.now
        aws.clock.run(wait_s)
        assert run.state == WAIT, (run.state, run.problem)
        home(aws).capacity.clear()
        tries = _tries(aws)
        _until(aws, run, "Train", 8 * HOUR)
        took_s = aws.clock.now - began
        yard.functions.wake(yard.attend)
        for machine in home(aws).running():
            node = Node(machine, phase=Phase.ENDED, exit=Exit(code=0))
            aws.clock.at(aws.clock.now + 60.0, lambda node=node: send(aws, node))  # type: ignore[misc]
        _until(aws, run, "", HOUR)
    assert home(aws).running() == []
    return Waited(
        status=run.status,
        waited_s=took_s,
        transitions=run.transitions,
        events=len(run.history),
        entered=run.entered(WAIT),
        tries=tries,
        history=dict(Counter(run.history)),
    )


def _tries(aws: Aws) -> int:
    """Walks over the ladder since the state was entered last."""
    (one,) = [one for one in kept(aws) if one[items.PARTITION]["S"] == items.CAPACITY]
    return decode(CapacityWait, items.unpacked(one)).tries


def _until(aws: Aws, run: Interpreted, state: str, most_s: float) -> None:
    """Time passes until the execution is in the state; empty: until it is over."""
    end = aws.clock.now + most_s
    while not (run.status if not state else run.state == state):
        assert not (run.status and state), (run.status, run.problem)
        assert aws.clock.now < end, (state, run.state)
        aws.clock.run(10.0)


def cases() -> dict[str, Waited]:
    """A minute, and two weeks: with a clock that never stops, one that is dead for seven hours once, twelve times, and for longer."""
    long_s, often_s = TWO_WEEKS - 6 * HOUR, 10 * MINUTE
    hours = [(number * DAY, number * DAY + 7 * HOUR) for number in range(1, 13)]
    return {
        "a minute": waited(SHORT_S),
        "two weeks": waited(long_s, tick_s=often_s),
        "two weeks, the clock dead for seven hours once": waited(long_s, tick_s=often_s, dead=hours[:1]),
        "two weeks, the clock dead for seven hours twelve times": waited(long_s, tick_s=often_s, dead=hours),
        "two weeks, the clock dead for 80 hours": waited(long_s, tick_s=often_s, dead=[(DAY, DAY + 80 * HOUR)]),
    }
