"""Log shipping: limits, order, retries, and the last lines."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections import deque
from collections.abc import Iterator

import pytest

from agent import logs
from agent.logs import LogShipper, count_rejected, cut, next_batch
from tests.node.fakes import FakeLogs, refusal

NOW = 1_750_000_000.0
HOUR, DAY = 3600.0, 86_400.0


@pytest.fixture
def cloudwatch() -> FakeLogs:
    return FakeLogs(now=lambda: NOW)


@pytest.fixture
def shipper(cloudwatch: FakeLogs) -> Iterator[LogShipper]:
    ticks = iter(range(1_000_000))
    made = LogShipper(lambda: cloudwatch, "group", "job/1/0", every_s=30, now=lambda: NOW + next(ticks) / 1000)
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
    assert cloudwatch.lines == ["[trainyard] lines are missing here: 1 that CloudWatch Logs rejected", "good"]


def test_what_does_not_fit_into_memory_loses_its_oldest_lines(
    shipper: LogShipper, cloudwatch: FakeLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "WAITING_BYTES", 300)
    for n in range(20):
        shipper.line(f"line {n:02}")
    assert not shipper.flush(5)
    assert "lines are missing here" in cloudwatch.lines[0]
    assert cloudwatch.lines[-1] == "line 19"


class Clock:
    """A machine's clock that is so many seconds ahead of AWS's."""

    ahead = 0.0

    def __call__(self) -> float:
        return NOW + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def by_clock(cloudwatch: FakeLogs, clock: Clock) -> Iterator[LogShipper]:
    made = LogShipper(lambda: cloudwatch, "group", "job/1/0", every_s=1000, now=clock)
    yield made
    made.close()


def write(shipper: LogShipper, clock: Clock, *lines: tuple[float, str]) -> None:
    for clock.ahead, text in lines:
        shipper.line(text)


def test_a_clock_that_is_set_back_a_little_does_not_disorder_the_events(
    by_clock: LogShipper, cloudwatch: FakeLogs, clock: Clock
) -> None:
    write(by_clock, clock, (0, "a"), (-50, "b"), (1, "c"))
    assert by_clock.flush(5)
    assert [event["timestamp"] - NOW * 1000 for event in cloudwatch.batches[0]] == [0, 0, 1000]


def test_lines_after_a_clock_was_set_right_arrive_and_the_one_before_is_counted(
    by_clock: LogShipper, cloudwatch: FakeLogs, clock: Clock
) -> None:
    write(by_clock, clock, (3 * HOUR, "early"), *((0, f"line {n}") for n in range(50)))
    assert not by_clock.flush(5)
    notice = "[trainyard] lines are missing here: 1 dated more than 2 hours ahead of AWS's clock"
    assert cloudwatch.lines == [*(f"line {n}" for n in range(50)), notice]


def test_a_clock_that_was_an_hour_ahead_costs_no_line_and_moves_no_other(
    by_clock: LogShipper, cloudwatch: FakeLogs, clock: Clock
) -> None:
    write(by_clock, clock, (HOUR, "early"), (0, "right"), (0, "right too"))
    assert by_clock.flush(5)
    assert cloudwatch.lines == ["right", "right too", "early"]


def test_lines_of_a_clock_that_jumps_arrive_wherever_it_was_right(
    by_clock: LogShipper, cloudwatch: FakeLogs, clock: Clock
) -> None:
    write(by_clock, clock, *(((0, 30 * HOUR, -20 * DAY)[n % 3], f"line {n}") for n in range(31)))
    assert not by_clock.flush(5)
    told = [line for line in cloudwatch.lines if "missing here" in line]
    assert [line for line in cloudwatch.lines if line not in told] == [f"line {n}" for n in range(0, 31, 3)]
    counted = [
        (int(one), reason) for line in told for one, reason in re.findall(r"(\d+) dated (more than \d+ \w+)", line)
    ]
    assert {why: sum(count for count, reason in counted if reason == why) for _, why in counted} == {
        "more than 2 hours": 10,
        "more than 14 days": 10,
    }


def test_a_batch_that_is_refused_as_a_whole_is_not_sent_again(
    by_clock: LogShipper, cloudwatch: FakeLogs, clock: Clock
) -> None:
    write(by_clock, clock, (30 * HOUR, "a"), (30 * HOUR, "b"))
    assert not by_clock.flush(5)
    assert (cloudwatch.lines, cloudwatch.calls) == ([], 2)
    assert not by_clock.flush(5), "no later flush takes that back"
    write(by_clock, clock, (0, "c"))
    assert not by_clock.flush(5)
    assert cloudwatch.lines == [
        "[trainyard] lines are missing here: 2 dated more than 2 hours ahead of AWS's clock",
        "c",
    ]


def test_a_clock_that_stays_wrong_is_not_called_about_for_ever(
    by_clock: LogShipper, cloudwatch: FakeLogs, clock: Clock
) -> None:
    write(by_clock, clock, *((5 * HOUR, f"line {n}") for n in range(40)))
    for _ in range(3):
        assert not by_clock.flush(5)
    assert (cloudwatch.lines, cloudwatch.calls) == ([], 4)  # the lines once, and each time what is missing


def test_what_arrived_of_a_batch_is_not_sent_twice(by_clock: LogShipper, cloudwatch: FakeLogs, clock: Clock) -> None:
    cloudwatch.kept_days = 1
    write(by_clock, clock, (-25 * HOUR, "expired"), (-3 * HOUR, "a"), (0, "b"))
    assert not by_clock.flush(5)
    write(by_clock, clock, (0, "c"))
    by_clock.flush(5)
    notice = "[trainyard] lines are missing here: 1 dated before what the log group keeps"
    assert sorted(cloudwatch.lines) == sorted([notice, "a", "b", "c"])


def test_what_is_missing_is_said_once_the_service_answers_again(
    by_clock: LogShipper, cloudwatch: FakeLogs, clock: Clock
) -> None:
    write(by_clock, clock, (3 * HOUR, "early"))
    calls = itertools.count()
    cloudwatch.fault = lambda call, _: refusal("Throttling") if call == "put" and next(calls) == 1 else None
    clock.ahead = 0
    assert not by_clock.flush(5)
    assert cloudwatch.lines == ["[trainyard] lines are missing here: 1 dated more than 2 hours ahead of AWS's clock"]


@pytest.mark.parametrize(
    ("info", "counted"),
    [
        ({}, {}),
        ({"tooNewLogEventStartIndex": 0}, {logs.TOO_NEW: 9}),
        ({"tooNewLogEventStartIndex": 8}, {logs.TOO_NEW: 1}),
        ({"tooOldLogEventEndIndex": 9}, {logs.TOO_OLD: 9}),
        ({"expiredLogEventEndIndex": 4}, {logs.EXPIRED: 4}),
        ({"tooOldLogEventEndIndex": 3, "expiredLogEventEndIndex": 4}, {logs.TOO_OLD: 3, logs.EXPIRED: 1}),
        ({"tooOldLogEventEndIndex": 3, "expiredLogEventEndIndex": 2}, {logs.TOO_OLD: 3}),
        ({"tooOldLogEventEndIndex": 3, "tooNewLogEventStartIndex": 7}, {logs.TOO_OLD: 3, logs.TOO_NEW: 2}),
    ],
)
def test_rejected_events_are_counted_by_reason(info: dict[str, int], counted: dict[str, int]) -> None:
    assert count_rejected(info, 9) == counted


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
