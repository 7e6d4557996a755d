"""What the whole agent does with an order: from the attendant, a spot notice, or the deadline."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from contract.codec import decode
from contract.commits import Commit
from contract.keys import JobPrefix
from contract.orders import Order, OrderKind
from tests.builders import PLACE
from tests.node.world import FAST, Site
from tests.waiting import until

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


@contextmanager
def once_it_trains(site: Site, act: Callable[[], object]) -> Iterator[None]:
    """Does `act` beside the agent, once its trainer has said "up"."""

    def wait_and_act() -> None:
        until(lambda: "up" in site.lines)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    yield
    thread.join()


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
    site.offer(
        "import sys\nprint('up', flush=True)\nsys.stdin.read()\nsys.exit(1)", timing=replace(FAST, orders_every_s=60.0)
    )
    real = site.aws.s3.put_object

    def order_when_it_trains(Bucket: str, Key: str, Body: bytes, **options: object) -> None:  # noqa: N803
        if b'"training"' in Body:
            site.order(ORDER)
        real(Bucket, Key, Body, **options)

    site.aws.s3.put_object = order_when_it_trains  # type: ignore[method-assign]
    ending = site.run()
    assert (ending.code, ending.error, ending.ordered) == (1, "Interrupted", True)


def test_a_trainer_that_succeeded_is_asked_for_no_order(site: Site) -> None:
    site.offer("print('up', flush=True)", timing=replace(FAST, orders_every_s=60.0))
    site.run()
    assert [key for call, key in site.aws.s3.calls if call == "get" and "order.json" in key] == [
        JobPrefix("job-1").order(1)
    ]


def test_the_order_that_a_node_obeys_is_in_its_reports_before_its_trainer_ends(site: Site) -> None:
    site.offer(SAVES_ON_TERM)
    with once_it_trains(site, lambda: site.order(ORDER)):
        site.run()
    assert site.report().order == ORDER


def test_an_order_to_dump_writes_stacks(site: Site) -> None:
    site.offer("import time\ndef waits_forever():\n    print('up', flush=True)\n    time.sleep(60)\nwaits_forever()")
    order = replace(ORDER, kind=OrderKind.DUMP, error="Stalled")
    with once_it_trains(site, lambda: site.order(order)):
        assert site.run().error == "Stalled"
    assert any("in waits_forever" in line for line in site.lines)


def test_a_spot_notice_becomes_the_order_of_the_attempt_and_an_urgent_report(site: Site) -> None:
    site.offer(SAVES_ON_TERM)
    notice = json.dumps({"action": "terminate", "time": "2027-01-01T00:00:00Z"})
    with once_it_trains(site, lambda: site.imds.values.update({"spot/instance-action": notice})):
        ending = site.run()
    order = decode(Order, site.aws.s3.objects[site.job.home_bucket, JobPrefix("job-1").order(1)])
    assert (order.error, order.author, order.by) == ("Interrupted", "rank 0", 1798761600)
    assert ending.error == "Interrupted"
    assert len(site.aws.s3.sent("urgent")) == 2


def test_a_node_stops_itself_ahead_of_the_deadline(site: Site) -> None:
    now = time.time()
    site.offer(SAVES_ON_TERM, deadline=int(now) + 3, admitted_at=now - 100)
    ending = site.run()
    assert (ending.error, ending.ordered) == ("DeadlineReached", True)
    order = decode(Order, site.aws.s3.objects[site.job.home_bucket, JobPrefix("job-1").order(1)])
    assert (order.error, order.author) == (
        "DeadlineReached",
        "rank 0",
    )  # its peers break when it leaves, and look for it


def test_an_order_while_requirements_install_ends_the_preparation(site: Site) -> None:
    site.offer("print('never')", files={"requirements.txt": "-r slow\n", "slow": ""})
    site.order(ORDER)
    ending = site.run()
    assert (ending.error, ending.ordered) == ("Interrupted", True)
    assert "never" not in site.lines


def test_an_order_that_cannot_be_understood_does_not_end_the_job(site: Site) -> None:
    site.offer("print('fine')")
    site.aws.s3.objects[site.job.home_bucket, JobPrefix("job-1").order(1)] = b'{"kind": "dance"}'
    ending = site.run()
    assert (ending.code, ending.ordered) == (0, False)
