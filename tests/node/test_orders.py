"""What the whole agent does with an order: from the attendant, a spot notice, or the deadline."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from agent import dumps
from agent.attempt import WORK
from contract.codec import decode
from contract.commits import Commit
from contract.orders import Order, OrderKind
from contract.reports import Phase
from localaws.testing.waiting import HANG_S, until
from tests.builders import PLACE
from tests.node.ordering import once_it_trains
from tests.node.world import FAST, Site

ORDER = Order(kind=OrderKind.CHECKPOINT_AND_STOP, error="Interrupted", reason="spot", by=0, author="attendant")
SAVES_ON_TERM = """
import json, os, signal, sys, time
def leave(*_):
    open(os.environ["CHECKPOINT_DIR"] + "/last.pt", "w").write("saved late")
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
open(os.environ["PROGRESS_FILE"], "w").write(json.dumps({"step": 7}))
print("up", flush=True)
while True:
    time.sleep(0.05)
"""


def test_an_order_lets_the_trainer_save_and_commits_what_it_saved(site: Site) -> None:
    site.offer(SAVES_ON_TERM)
    with once_it_trains(site, lambda: site.order(ORDER)):
        ending = site.run()
    assert (ending.error, ending.reason, ending.ordered) == ("Interrupted", "spot", True)
    report = site.report(urgent=True)
    assert report.checkpoint_step == 7
    assert [file.path for file in decode(Commit, site.aws.s3.objects[PLACE.bucket, report.checkpoint]).files] == [
        "last.pt"
    ]


def test_a_trainer_that_ignores_an_order_is_killed_after_its_grace(site: Site) -> None:
    site.offer(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)",
        timing=replace(FAST, stop_grace_s=0.3),
    )
    with once_it_trains(site, lambda: site.order(ORDER)):
        ending = site.run()
    assert (ending.code, ending.error, ending.ordered) == (137, "Interrupted", True)


def test_a_trainer_that_breaks_because_a_peer_obeyed_first_stopped_as_ordered(site: Site) -> None:
    """The order comes and the trainer dies between two looks."""
    waits = "while not os.path.exists('go'): time.sleep(.05)"
    site.offer(f"import os, sys, time\n{waits}\nsys.exit(1)", timing=replace(FAST, orders_every_s=HANG_S))

    def order_when_it_trains(call: str, _sort: str) -> None:
        if call == "put" and site.aws.table.written and site.report().phase is Phase.TRAINING:
            site.order(ORDER)
            (site.root / WORK / "code" / "go").touch()

    site.aws.table.lost = order_when_it_trains
    ending = site.run()
    assert (ending.code, ending.error, ending.ordered) == (1, "Interrupted", True)


def test_a_trainer_that_succeeded_is_asked_for_no_order(site: Site) -> None:
    site.offer("print('up', flush=True)", timing=replace(FAST, orders_every_s=60.0))
    site.run()
    assert len(site.aws.table.list_calls("get")) == 2  # the first told the time, the second was the look at the start


def test_the_order_that_a_node_obeys_is_in_its_reports_before_its_trainer_ends(site: Site) -> None:
    site.offer(SAVES_ON_TERM)
    with once_it_trains(site, lambda: site.order(ORDER)):
        site.run()
    assert site.report().order == ORDER


def test_an_order_to_dump_writes_stacks(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dumps, "ANSWER_S", HANG_S)
    monkeypatch.setattr(dumps, "MOST_S", HANG_S)
    site.offer("import time\ndef waits_forever():\n    print('up', flush=True)\n    time.sleep(60)\nwaits_forever()")
    order = replace(ORDER, kind=OrderKind.DUMP, error="Stalled")
    with once_it_trains(site, lambda: site.order(order)):
        assert site.run().error == "Stalled"
    assert any("in waits_forever" in line for line in site.lines)


NOTICE = {"spot/instance-action": json.dumps({"action": "terminate", "time": "2027-01-01T00:00:00Z"})}


def find_order(site: Site) -> Order | None:
    """The order that an urgent report of a node that still trains asks for."""
    told = (report.order for report in site.sent(urgent=True) if report.phase is Phase.TRAINING)
    return next(told, None)


def test_a_spot_notice_becomes_an_urgent_report_and_stops_nobody_before_the_attendant_has_answered(site: Site) -> None:
    """Ten minutes are the patience here: only the copy of its own order can end this run."""
    site.offer(SAVES_ON_TERM, timing=replace(FAST, orders_every_s=0.05, report_every_s=0.2))
    seen: list[bool] = []

    def attend() -> None:
        site.imds.values.update(NOTICE)
        order = until(lambda: find_order(site))
        seen.append(site.report().outcome is None)
        site.order(order)

    with once_it_trains(site, attend), pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent.orders.PATIENCE", 600 / 0.05)
        ending = site.run()
    order = find_order(site)
    assert order is not None
    assert (order.error, order.author, order.by) == ("Interrupted", "rank 0", 1798761600)
    assert seen == [True]
    assert (ending.error, ending.ordered) == ("Interrupted", True)
    assert site.report().checkpoint_step == 7
    assert len(site.sent(urgent=True)) == 2


def test_a_spot_notice_stops_the_node_also_where_the_attendant_never_answers(site: Site) -> None:
    site.offer(SAVES_ON_TERM)
    with once_it_trains(site, lambda: site.imds.values.update(NOTICE)):
        ending = site.run()
    assert (ending.error, ending.ordered) == ("Interrupted", True)
    order = site.report().order
    assert order is not None
    assert (order.error, order.author) == ("Interrupted", "rank 0")


@pytest.mark.parametrize(
    ("code", "error", "ordered"), [(0, "", False), (1, "Interrupted", True)], ids=["finishes", "breaks"]
)
def test_a_trainer_that_ends_while_its_nodes_own_order_waits_has_succeeded_or_stopped_as_ordered(
    site: Site, code: int, error: str, ordered: bool
) -> None:
    waits = "while not os.path.exists('go'): time.sleep(.05)"
    site.offer(f"import os, sys, time\nprint('up', flush=True)\n{waits}\nsys.exit({code})")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent.orders.PATIENCE", 600 / 0.05)

        def let_go() -> None:
            site.imds.values.update(NOTICE)
            until(lambda: find_order(site))
            (site.root / WORK / "code" / "go").touch()

        with once_it_trains(site, let_go):
            ending = site.run()
    assert (ending.code, ending.error, ending.ordered) == (code, error, ordered)


def test_a_node_stops_itself_ahead_of_the_deadline_and_tells_it(site: Site) -> None:
    now = time.time()
    site.offer(SAVES_ON_TERM, deadline=int(now) + 3, admitted_at=now - 100)
    ending = site.run()
    assert (ending.error, ending.ordered) == ("DeadlineReached", True)
    order = site.sent(urgent=True)[0].order
    assert order is not None
    assert (order.error, order.author) == ("DeadlineReached", "rank 0")


def test_an_order_of_a_thousand_letters_is_obeyed_and_reported(site: Site) -> None:
    site.offer(SAVES_ON_TERM)
    order = replace(ORDER, reason="long " * 1000)
    site.order(order)
    assert site.run().reason == order.reason
    assert site.report().order == order


def test_an_order_while_requirements_install_ends_the_preparation(site: Site) -> None:
    site.offer("print('never')", files={"requirements.txt": "-r slow\n", "slow": ""})
    site.order(ORDER)
    ending = site.run()
    assert (ending.error, ending.ordered) == ("Interrupted", True)
    assert "never" not in site.lines


def test_an_order_that_cannot_be_understood_does_not_end_the_job(site: Site) -> None:
    site.offer("print('fine')")
    site.put_order(b'{"kind": "dance"}')
    ending = site.run()
    assert (ending.code, ending.ordered) == (0, False)
