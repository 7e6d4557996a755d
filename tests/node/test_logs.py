"""Log shipping: limits, order, retries, and the last lines."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator

import pytest

from agent import logs
from agent.logs import LogShipper, cut, next_batch
from tests.node.fakes import FakeLogs, refusal


@pytest.fixture
def cloudwatch() -> FakeLogs:
    return FakeLogs()


@pytest.fixture
def shipper(cloudwatch: FakeLogs) -> Iterator[LogShipper]:
    ticks = iter(range(1_000_000))
    made = LogShipper(lambda: cloudwatch, "group", "job/1/0", every_s=30, now=lambda: 1000 + next(ticks) / 1000)
    yield made
    made.close()


def test_the_last_lines_arrive_when_they_are_flushed(shipper: LogShipper, cloudwatch: FakeLogs) -> None:
    for n in range(5):
        shipper.line(f"line {n}")
    assert shipper.flush(5)
    assert cloudwatch.lines == [f"line {n}" for n in range(5)]


EMBEDDED = {
    "_aws": {
        "Timestamp": 1,
        "CloudWatchMetrics": [
            {"Namespace": "Trainyard", "Dimensions": [["deployment"]], "Metrics": [{"Name": "ReaperPasses"}]}
        ],
    },
    "deployment": "yard",
    "ReaperPasses": 1,
}
METRICS = json.dumps(EMBEDDED)


@pytest.mark.parametrize(
    "line",
    [
        METRICS,
        f" \t{METRICS}",
        f"\ufeff{METRICS}",
        json.dumps({"epoch": 1, **EMBEDDED}),
        METRICS.replace("_aws", "\\u005faws"),
        METRICS.replace("_aws", "\\u005F\\u0061w\\u0073"),
        METRICS.replace('"_aws": ', '"_aws":\t'),
    ],
)
def test_what_a_job_prints_never_becomes_a_metric(shipper: LogShipper, cloudwatch: FakeLogs, line: str) -> None:
    assert "_aws" in json.loads(line.lstrip("\ufeff"))
    shipper.line(line)
    assert shipper.flush(5)
    (sent,) = cloudwatch.lines
    assert sent == f"[no metrics] {line}"
    with pytest.raises(ValueError, match=r"Expecting|Extra|BOM"):
        json.loads(sent)


@pytest.mark.parametrize(
    "line",
    ['{"epoch": 1, "loss": 0.5}', '{"text": "\\u00e9t\\u00e9"}', "import _aws", '["_aws"]', "{", "step 1: _aws {}", ""],
)
def test_other_lines_arrive_as_they_are(shipper: LogShipper, cloudwatch: FakeLogs, line: str) -> None:
    shipper.line(line)
    assert shipper.flush(5)
    assert cloudwatch.lines == [line or " "]


def test_nothing_to_flush_is_flushed(shipper: LogShipper, cloudwatch: FakeLogs) -> None:
    assert shipper.flush(5)
    assert cloudwatch.batches == []


def test_a_stream_that_exists_is_used(shipper: LogShipper, cloudwatch: FakeLogs) -> None:
    cloudwatch.streams.append("job/1/0")
    shipper.line("again")
    assert shipper.flush(5)


def test_a_call_that_fails_is_made_again_with_the_same_lines(shipper: LogShipper, cloudwatch: FakeLogs) -> None:
    failures = iter(range(2))
    cloudwatch.fault = lambda _call, _key: refusal("Throttling") if next(failures, None) is not None else None
    shipper.line("once")
    assert shipper.flush(10)
    assert cloudwatch.lines == ["once"]


def test_a_flush_that_fails_says_so_in_time(shipper: LogShipper, cloudwatch: FakeLogs) -> None:
    cloudwatch.fault = lambda _call, _key: refusal("Throttling")
    shipper.line("lost")
    assert not shipper.flush(0.2)


def test_a_flush_does_not_wait_for_a_call_that_hangs(shipper: LogShipper, cloudwatch: FakeLogs) -> None:
    release = threading.Event()
    cloudwatch.fault = lambda _call, _key: refusal("Throttling") if not release.wait(5) else None
    shipper.line("slow")
    assert not shipper.flush(0.2)
    release.set()


def test_lines_that_are_refused_do_not_hold_up_the_others(shipper: LogShipper, cloudwatch: FakeLogs) -> None:
    refused = iter(range(1))
    cloudwatch.fault = lambda call, _key: (
        refusal("InvalidParameterException") if call == "put" and next(refused, None) is not None else None
    )
    shipper.line("poison")
    assert not shipper.flush(5)
    shipper.line("good")
    shipper.flush(5)
    assert cloudwatch.lines == ["[trainyard] 1 lines are missing here: CloudWatch Logs did not take them", "good"]


def test_what_does_not_fit_into_memory_loses_its_oldest_lines(
    shipper: LogShipper, cloudwatch: FakeLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "WAITING_BYTES", 300)
    for n in range(20):
        shipper.line(f"line {n:02}")
    assert not shipper.flush(5)
    assert "lines are missing here" in cloudwatch.lines[0]
    assert cloudwatch.lines[-1] == "line 19"


def test_a_clock_that_is_set_back_does_not_disorder_the_events(cloudwatch: FakeLogs) -> None:
    times = iter([100.0, 50.0, 101.0])
    shipper = LogShipper(lambda: cloudwatch, "group", "s", every_s=30, now=lambda: next(times))
    for word in "abc":
        shipper.line(word)
    assert shipper.flush(5)
    shipper.close()
    assert [event["timestamp"] for event in cloudwatch.batches[0]] == [100_000, 100_000, 101_000]


def test_long_lines_are_cut_and_empty_ones_are_a_space() -> None:
    assert len(cut("ü" * 300_000).encode()) < 256 * 1024 - 26
    assert "bytes cut]" in cut("ü" * 300_000)
    assert cut("") == " "
    assert cut("a\udcff") == "a?"


def test_batches_keep_every_limit_of_the_service() -> None:
    events = [{"timestamp": n, "message": "x" * 1000} for n in range(3000)]
    events += [{"timestamp": 10**9 + n, "message": "y"} for n in range(25_000)]
    waiting, batches = deque(events), []
    while batch := next_batch(waiting):
        batches.append(batch)
    assert [event for batch in batches for event in batch] == events
    for batch in batches:
        assert len(batch) <= 10_000
        assert sum(len(event["message"]) + 26 for event in batch) <= 1_048_576
        assert batch[-1]["timestamp"] - batch[0]["timestamp"] < 24 * 3600 * 1000
