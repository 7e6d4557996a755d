"""One deployment for all rehearsed jobs of a test run, and jobs with faults of their own that run beside all others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from contract.timing import Timing
from localaws.conditions import Conditions
from rehearsal import request_check
from rehearsal.fault_keys import STATES
from rehearsal.faults import parse_faults
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.benches import Laboratory
from tests.rehearsal.jobs import ENDLESS, ONE, ended, train
from tests.rehearsal.mailbox import Mailbox
from tests.rehearsal.regions import REGIONS
from tests.rehearsal.searches import SEARCHES, search_field, stopped_searches
from tests.rehearsal.waves import directors, first_wave, second_wave

AFTER = {"Launch": 7, "Train": 150}
"""Seconds, real ones, from entering the state to the stop: a launch may be on its way then, a node at its work."""
SHARED = directors, first_wave, second_wave, search_field, stopped_searches
"""Fixtures of another file, which pytest finds here."""
STOPPED = {
    **{f"stop-{state.lower()}": f"abort-in-state:state={state},after={AFTER.get(state, 0)}" for state in STATES},
    **{f"unheard-{state.lower()}": f"abort-in-state:state={state},after={after}" for state, after in AFTER.items()},
    "unheard-refused": "abort-in-state:state=Train,after=150",
}
"""Jobs of test_unattended.py, which somebody stops; of the unheard ones no event tells."""
DOOMED = "doomed"
"""A job of test_destroy.py that trains until the deployment goes away."""
BESIDE = {
    "slow": "slow-boot:seconds=600",
    "killed": "agent-crash:at=10,closed=1",
    "broken": "user-data-fails:line=2",
    "cut": "no-network:at=10",
    "full": "disk-full:at=10",
    "skewed": "clock-skew:seconds=300",
    "untagged": "late-tags:seconds=300",
    "stuck": "trainer-hang:at=15,closed=1,rank=1",
    "given-up": "trainer-hang:at=15",
    "watched": "trainer-hang:at=15",
    "missing-gpu": "bad-gpu:how=fewer",
    "fallen-gpu": "bad-gpu:how=xid,at=10,closed=1",
}
"""Jobs that meet a fault while other tests run, and the fault, which is theirs alone."""
STALLS = {
    "stuck": {"nodes": 2, "stall": {"minutes": 0.1, "then": "restart"}},
    "given-up": {"stall": {"minutes": 0.1, "then": "stop"}},
    "watched": {"stall": {"minutes": 0.1, "then": "notify"}},
}
GPU = {"instance_types": ["g5.xlarge"]}
ASKED = {
    **{name: ENDLESS | stall for name, stall in STALLS.items()},
    "killed": ENDLESS,
    "cut": ENDLESS,
    "full": ENDLESS,
    "missing-gpu": GPU,
    "fallen-gpu": GPU | ENDLESS,
}
"""What requests of these ask beside the others."""
MEASURED = ["slow-link:rank=1,job=slow-network"]
"""What the job meets that measures the network between its nodes."""
UNATTENDED = [
    *(f"timer-off:job={job}" for job in (*STOPPED, "cut")),
    *(f"cleanup-event-lost:job={job}" for job in STOPPED if job.startswith("unheard-")),
    "cleanup-event-lost:job=page-unheard",
    "terminate-refused:job=unheard-refused",
]
"""What the jobs of test_unattended.py have to do without."""
MAIN = [
    "no-capacity:rungs=1,job=recovering",
    "node-lost:rank=1,step=10,closed=1,job=recovering",
    "response-lost:job=unanswered",
    "spot-notice:step=40,job=disturbed",
    "spot-kill:step=130,job=disturbed",
    "spot-kill:step=50,closed=40,rank=0,job=keeper",
]
"""The same for jobs of test_main_job.py."""
LINKS_S = 90.0
"""Seconds: two nodes import PyTorch beside all other tests, and a tenth of five minutes may be too short for that."""
BOOT_S = 180.0
"""Seconds: twenty nodes boot on two cores beside all other tests, and 90 s (15 minutes, ten times as fast) were not always enough."""
SAVING_S = 120.0
"""Seconds: what is trained and saved within a spot notice takes this computer as long as it takes, and 12 s were not always enough."""
CLOCK_LATER = {"missing_report_after_s": 200.0, "missing_report_until_s": 400.0}
"""Seconds: of a job whose end no event tells, the cleanup's clock ends what it finds, and the reaper is to have its chance first."""
PLACES = [
    *(
        f"capacity-away:region={region},attempt={attempt},job=moved"
        for attempt, region in ((1, "us-east-1"), (2, "eu-central-1"))
    ),
    "spot-notice:rank=1,step=40,closed=1,job=moved",
    "capacity-away:market=spot,job=bought",
    "spot-rebalance:rank=0,step=20,job=advised",
]
"""The same for jobs of test_places.py."""
GRIDS = [
    "create-response-lost:line=0,job=met",
    "child-killed:line=0,after=60,job=met",
    "spot-interrupted:line=1,after=20,job=met",
]
"""The same for the grid of test_grid.py that meets them all."""


TURNS = ("begins", "between", "looks back", "judges", "destroys")
"""Of modules that share the deployment, in order. `begins` starts what runs beside all others, `looks back` sees how that ended,
`judges` wants the calls of all, and `destroys` leaves nothing to the next. A module that does not say is between."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share the deployment come last, and can be chosen by their mark: a process has one local AWS at a time."""
    items.sort(key=place)
    for item in filter(shares_the_yard, items):
        item.add_marker(pytest.mark.deployed)


def place(item: pytest.Item) -> int:
    """After all that have the same or a lower one; the file's name says nothing."""
    if not shares_the_yard(item):
        return -1
    mark = item.get_closest_marker("turn")
    turn = mark.args[0] if mark else "between"
    if turn not in TURNS:
        raise pytest.UsageError(f"{item.nodeid}: turn {turn!r}: there is no such turn; allowed: {', '.join(TURNS)}")
    return TURNS.index(turn)


def shares_the_yard(item: pytest.Item) -> bool:
    """Other tests, and a module among these, may have a yard of their own, of the same name."""
    rehearsed = item.get_closest_marker("rehearsal") is not None
    return (
        rehearsed and "yard" in getattr(item, "fixturenames", ()) and not hasattr(getattr(item, "module", None), "yard")
    )


@pytest.fixture(scope="session")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """The product, deployed by the real CDK command line, under the conditions of `make rehearse`."""
    faults = [f"{fault},job={job}" for job, fault in (STOPPED | BESIDE).items()]
    conditions = Conditions(
        speed=10.0,
        spot_notice_s=10 * SAVING_S,
        faults=parse_faults([*faults, *MEASURED, *UNATTENDED, *MAIN, *PLACES, *GRIDS, *SEARCHES]),
    )
    timing = asdict(Timing().divided(conditions.speed)) | {
        "boot_allowance_s": BOOT_S,
        "links_patience_s": LINKS_S,
        "warm_up_s": 1.0,
        **CLOCK_LATER,
    }
    settings = {"regions": REGIONS, "timing": timing, "limits": {"leave_on_rebalance": True}}
    with Yard(tmp_path_factory.mktemp("yard") / "work", conditions, settings=settings) as deployed:
        yield deployed


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    """The JupyterLab of workbenches, which pip fetches once."""
    return Laboratory(tmp_path_factory.mktemp("laboratory"))


@pytest.fixture(scope="session")
def mailbox(yard: Yard) -> Mailbox:
    """Hears whatever the deployment has to say to people, from the first test that asks for it on."""
    return Mailbox(yard)


@pytest.fixture(scope="session")
def trainer(yard: Yard) -> str:
    """Address of the uploaded trainer without a framework."""
    return yard.upload(Path(__file__).with_name("trainer"), "trainer")


@pytest.fixture(scope="session")
def unattended(yard: Yard, trainer: str, mailbox: Mailbox) -> dict[str, StartedJob]:  # noqa: ARG001  (hears what becomes of them)
    """Started by the first tests of all, since what is left behind is ended minutes later; the last ones see how."""
    request = {**ONE, "code": trainer, "checkpoint_minutes": 0.02, "notify": ["failed"]}
    soon = {"stop-sync": train(2, 0.1), "stop-terminate": train(2, 0.1)}
    endless = train(100_000, 0.2)
    return {name: yard.start({**request, "command": soon.get(name, endless)}, name) for name in (*STOPPED, DOOMED)}


@pytest.fixture(scope="session")
def beside(yard: Yard, trainer: str, mailbox: Mailbox) -> dict[str, StartedJob]:  # noqa: ARG001  (hears of one of them)
    """Started by the first test that asks for it; the last ones see how they ended."""
    request = {**ONE, "code": trainer, "command": train(40, 0.2), "checkpoint_minutes": 0.02}
    return {name: yard.start(request | ASKED.get(name, {}), name) for name in BESIDE}


@pytest.fixture(scope="session")
def measured(yard: Yard, trainer: str, second_wave: dict[str, StartedJob]) -> StartedJob:
    """Not beside the others: its nodes start PyTorch, and another job's first checkpoint was late by that."""
    ended(second_wave["disturbed"])
    request = {**ONE, "code": trainer, "command": train(40, 0.2), "checkpoint_minutes": 0.02}
    return yard.start({**request, "nodes": 2, "health": "deep"}, "slow-network")


@pytest.fixture
def checked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are checked without a process for each, which takes longer to start than to check."""

    def ask(kind: str, request: Mapping[str, Any], *code: str) -> Any:
        return json.loads(json.dumps(request_check.check(kind, json.loads(json.dumps(request)), *code)))

    monkeypatch.setattr(request_check, "_ask", ask)
