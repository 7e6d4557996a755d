"""`make bench-state`: what eight hours of four nodes cost in the control plane, and a load of a thousand jobs.

Everything runs on the fake AWS and a virtual clock: calls are recorded, not estimated. The attendant's handler and the node's
Reporter and OrderWatch are the real ones. A call takes 20 ms, and what the attendant computes takes its share of a processor
(512 MB of 1,769).
"""

from __future__ import annotations

import math
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from attendant.passes import AT_ONCE, SLICE
from benchmarks.pages import write_page
from benchmarks.state import cost, cpu
from benchmarks.state.load import ENDS, JOBS, MANY, NODES, Load, load, slices
from tests.fakes.aws import CALL_S
from tests.fakes.fleet import CALL_CPU_S, ITEM_CPU_S, SHARE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "state.md"
MOST_USD, MOST_LATE_S, MOST_VERDICT_S = 0.01, 90.0, 1.0
OTHERS = 5000
A_LOOK_CALLS = 6
"""Job, intent, instances, reports, order, heartbeat."""
SKYPILOT = (
    "SkyPilot's published controller costs $0.19 to $0.25 an hour: $1.55 for\neight hours of one job alone, and $0.008 "
    "a job where many "
    "share it. Ours costs the same for a job alone and for one of many."
)


def main() -> int:
    call_s, item_s = cpu.measured()
    bill = cost.eight_hours(call_s, item_s)
    month, before_usd = cost.idle_month(call_s, item_s)
    ran = load()
    p99 = ran.verdicts_s[math.ceil(len(ran.verdicts_s) * 0.99) - 1]
    broken = {
        f"eight hours cost ${bill.usd:.4f}": bill.usd > MOST_USD,
        f"a look began {ran.late_s:.0f} s after its tick": ran.late_s > MOST_LATE_S,
        f"a job went {ran.unbeaten_s:.0f} s without a heartbeat": ran.unbeaten_s > MOST_LATE_S,
        f"p99 of verdicts is {p99:.2f} s": p99 > MOST_VERDICT_S,
        f"{ran.many_looks} looks at {MANY} nodes": ran.many_looks * MANY * 10 > MANY * MANY,
        f"a call takes {call_s * 1000:.1f} ms, an item {item_s * 1000:.2f} ms": call_s > CALL_CPU_S
        or item_s > ITEM_CPU_S,
    }
    page = [
        "# The control plane of jobs",
        __doc__ or "",
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, boto3 {version('boto3')}.",
        *_eight_hours(bill),
        *_idle(month, before_usd),
        *_load(ran, p99, call_s, item_s),
        *_on_paper(ran),
    ]
    write_page(PAGE, "\n".join(page) + "\n")
    print(PAGE.read_text(), *(what for what, is_broken in broken.items() if is_broken), sep="\n")
    return any(broken.values())


def list_rows(bill: cost.Bill) -> list[str]:
    """Returns a row of the page for each line of the bill."""
    return [f"| {what} | {amount:,.0f} | {usd:.5f} |" for what, (amount, usd) in bill.lines.items()]


def _table(bill: cost.Bill) -> list[str]:
    return ["| what | amount | $ |", "|---|---|---|", *list_rows(bill), f"| **all** | | **{bill.usd:.4f}** |"]


def _eight_hours(bill: cost.Bill) -> list[str]:
    return [
        "\n## Eight hours of four nodes\n",
        f"**${bill.usd:.4f}**; with objects of S3 in place of the table it was ${cost.BEFORE_USD} (3,840",
        "PUTs of reports $0.019, 23,040 GETs of",
        "orders $0.009, LISTs $0.007, events $0.004, Lambda $0.0025 and others). " + SKYPILOT + "\n",
        *_table(bill),
        "\nPrices of us-east-1, with their sources in `benchmarks/state/cost.py`. Every tick counts as",
        "this job's own, which it shares with all",
        "others. Not counted: the nodes' logs and bytes, and the reaper, which are no part of a job's control.",
    ]


def _idle(month: cost.Bill, before_usd: float) -> list[str]:
    table = sum(usd for what, (_, usd) in month.lines.items() if what.startswith("units"))
    return [
        "\n## A month without jobs\n",
        f"The ticks' requests cost ${table:.3f} a month at the table, and cost ${before_usd:.3f} at S3",
        "(a PUT, a LIST and a GET each). What else a tick",
        "takes is as before.\n",
        *_table(month),
    ]


def _load(ran: Load, p99: float, call_s: float, item_s: float) -> list[str]:
    median = ran.verdicts_s[len(ran.verdicts_s) // 2]
    return [
        f"\n## {JOBS:,} jobs of {NODES} nodes and one of {MANY}, one region of ten silent\n",
        "| what | found | allowed |",
        "|---|---|---|",
        f"| longest time from a tick to the begin of a job's look | {ran.late_s:.1f} s | {MOST_LATE_S:.0f} s |",
        f"| longest time without a heartbeat | {ran.unbeaten_s:.1f} s | {MOST_LATE_S:.0f} s |",
        f"| longest invocation | {ran.longest_s:.1f} s | 60 s |",
        f"| from the last urgent write to the verdict, beyond the stream's delay, median | {median:.2f} s | |",
        f"| the same, p99 of {ENDS} jobs that end, in silent regions too | {p99:.2f} s | {MOST_VERDICT_S:.0f} s |",
        f"| the same, the longest | {ran.verdicts_s[-1]:.2f} s | |",
        f"| the stream's own delay in the fake | {ran.stream_s:.1f} s | |",
        f"| looks at {MANY} nodes that end at once | {ran.many_looks} | |",
        f"| reports that these read | {ran.many_looks * MANY:,} | far below {MANY * MANY:,} |",
        f"| from the last of their writes to the verdict, beyond the stream's delay | {ran.many_s:.2f} s | |",
        f"\n{ran.looks:,} looks in {ran.invocations} invocations; {ran.cpu_s:.0f} s of CPU here. All",
        "processes are warm, as after the first minutes; a cold start adds",
        "about two seconds. EC2 of the silent region takes connections and never answers (7 s a try,",
        "two tries). The account runs as many",
        f"functions as it needs at once: {slices(JOBS)} for a pass, and up to eight for the stream (reserved_concurrency is set;",
        "without it, four). In a new account, which runs ten, all looks are in time as",
        "well, but a verdict may have to wait for seconds, or until a pass is over.\n",
        f"Measured on this machine: {call_s * 1000:.1f} ms of a whole processor a call and",
        f"{item_s * 1000:.2f} ms an item of an answer (real handler, real boto3 with signing; the",
        f"fake's own time left out; {cpu.TLS_S * 1000:.1f} ms a call are added for TLS). The load",
        f"reckons with {CALL_CPU_S * 1000:.1f} and {ITEM_CPU_S * 1000:.1f} ms, divided by the share of",
        f"{SHARE:.2f}, and the threads of an invocation compute one after the other.",
    ]


def _on_paper(ran: Load) -> list[str]:
    look_s = (A_LOOK_CALLS * CALL_CPU_S + (2 * NODES + 1) * ITEM_CPU_S) / SHARE
    tokens_units = OTHERS * 1000 / 4096
    return [
        f"\n## {OTHERS:,} jobs of {NODES} nodes, on paper\n",
        f"- A pass is {slices(OTHERS)} slices of {SLICE} attempts: the tick's invocation keeps one and",
        f"  hands over {slices(OTHERS) - 1}, one call of {CALL_S * 1000:.0f} ms and",
        f"  {CALL_CPU_S / SHARE * 1000:.0f} ms of computing each:",
        f"  {(slices(OTHERS) - 1) * (CALL_S + CALL_CPU_S / SHARE):.1f} s until the last one begins.",
        f"- A slice computes {SLICE} x {look_s * 1000:.0f} ms = {SLICE * look_s:.0f} s, with {AT_ONCE}",
        "  looks side by side, and a silent region adds at most 19 s: its last look begins",
        f"  at most {SLICE * look_s + 19 + (slices(OTHERS) - 1) * (CALL_S + CALL_CPU_S / SHARE):.0f} s",
        f"  after the tick. Here, with a fifth of the jobs, it was {ran.late_s:.0f} s.",
        f"- The partition `waiting` gives {tokens_units:,.0f} units for the pass and as many for all",
        "  slices, of the 3,000 a second that a partition gives;",
        "  the first invocation reads them in five pages, one after the other, and the slices begin",
        "  later. 12,000 jobs are the limit of this key.",
        f"- The account has to run {slices(OTHERS)} functions at once beside the others: more than a new",
        "  one may, and fewer than the usual 1,000.",
        f"- {OTHERS * NODES:,} nodes write {OTHERS * NODES / 30:,.0f} units a second, each to a",
        "  partition key of its own. An on-demand table takes 4,000 a second from its first",
        "  day. They read half a unit every 5 s each: 2,000 a second, of 12,000.",
        f"- Step Functions takes {OTHERS / 60:.0f} heartbeats a second on average, of 500.",
    ]


if __name__ == "__main__":
    sys.exit(main())
