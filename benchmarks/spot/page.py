"""The page of the figures, and which of them are less than they may be."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version

from benchmarks.spot import peers
from benchmarks.spot.assumed import Assumed, Chance
from benchmarks.spot.cases import CASES, NOTICED, TABLE
from benchmarks.spot.peers import Peer
from benchmarks.spot.relaunch import Relaunched, describe_relaunch
from benchmarks.spot.replay import LIMITS, Replayed
from benchmarks.spot.traces import SOURCE, Trace

LEAST_HARDEST, LEAST = 0.965, 0.98
"""Of what is paid, what has to become progress: on the trace with the least mean up-time, and on the others."""
WIDTH = 40
FROM = 0.8
"""Where bars begin."""
Known = Mapping[str, Mapping[str, Replayed]]
"""By case and by the trace's name."""


def page(traces: Sequence[Trace], known: Known, soon: Relaunched | None) -> str:
    missed = [f"- Not reached: {line}." for line in broken(traces, known, soon)]
    missed += [f"- With one loss in ten without notice: {line}." for line in _short(traces, known[TABLE])]
    parts = [
        _table(traces, known),
        ["", *missed] if missed else [],
        _parts(traces, known[TABLE]),
        _cases(traces, known),
        _interval(traces),
    ]
    return (
        "\n".join([_ABOUT, *(line for part in parts for line in part), *describe_relaunch(soon), *_assumptions()])
        + "\n"
    )


def broken(traces: Sequence[Trace], known: Known, soon: Relaunched | None) -> list[str]:
    """One line for each figure that is not what it must be, where AWS gives every notice that it promises."""
    wrong = _short(traces, known[NOTICED])
    for trace in traces:
        for of in (known[TABLE], known[NOTICED]):
            if (ours := of.get(trace.name)) is not None and ours.status == "FAILED":
                wrong.append(f"{trace.name}: {ours.problem}")
    return wrong + ([soon.wrong] if soon is not None and soon.wrong else [])


def _short(traces: Sequence[Trace], of: Mapping[str, Replayed]) -> list[str]:
    """One line for each trace of which too little becomes progress."""
    wrong = list[str]()
    for place, trace in enumerate(traces):
        ours, least = of.get(trace.name), LEAST if place else LEAST_HARDEST
        if ours is not None and ours.share < least:
            best = _rivals(trace)["bound"].share
            wrong.append(
                f"{trace.name}: {ours.share:.4f} of what is paid becomes progress, and {least} is wanted; the bound is {best:.4f}"
            )
    return wrong


def _rivals(trace: Trace) -> dict[str, Peer]:
    assumed, chance = CASES[TABLE][1], Chance(0, trace.name)
    return {
        "hourly, all anew": peers.hourly(trace, assumed, chance),
        "as SkyPilot": peers.skypilot_like(trace, assumed, chance),
        "bound": peers.bound(trace, assumed, chance),
    }


def _table(traces: Sequence[Trace], known: Known) -> list[str]:
    rows, bars = list[str](), list[str]()
    for trace in traces:
        one, noticed, others = known[TABLE].get(trace.name), known[NOTICED].get(trace.name), _rivals(trace)
        if one is None or noticed is None:
            continue
        ours = {"every notice": noticed, "one in ten lost": one}
        shares = {name: found.share for name, found in ours.items()} | {
            name: peer.share for name, peer in others.items()
        }
        kept = {"Trainyard": one.progress_s} | {name: peer.progress_s for name, peer in others.items()}
        had = sum(stretch.length for stretch in trace.stretches) * trace.nodes
        cells = [
            trace.name, f"{trace.mean_up_s / 3600:.2f} h", trace.interruptions, f"{had / 3600:,.0f}",
            f"**{noticed.share:.4f}**", f"**{one.share:.4f}**", *(f"{peer.share:.4f}" for peer in others.values()),
            *(f"{100 * kept[name] / had:.1f} %" for name in ("Trainyard", "as SkyPilot", "bound")),
        ]  # fmt: skip
        rows.append(_row(cells))
        bars += [trace.name, *(f"  {name:<17}{_bar(share)} {share:.4f}" for name, share in shares.items())]
    head = [
        "trace",
        "mean up-time",
        "interruptions",
        "node-hours there",
        "Trainyard, every notice",
        "one notice in ten lost",
    ]
    used = ["used of what was there: Trainyard", "as SkyPilot", "bound"]
    return [
        "\n## Share of paid time that becomes progress\n", _row([*head, *_rivals(traces[0]), *used]), _row(["---"] * 12),
        *rows, f"\nBars begin at {FROM}:\n", "```", *bars, "```",
    ]  # fmt: skip


def _bar(share: float) -> str:
    return ("#" * round(max(0.0, share - FROM) / (1 - FROM) * WIDTH)).ljust(WIDTH, ".")


def _parts(traces: Sequence[Trace], ours: Mapping[str, Replayed]) -> list[str]:
    rows = list[str]()
    for trace in traces:
        if (one := ours.get(trace.name)) is None or not one.paid_s:
            continue
        lost = (one.before_s, one.paused_s, one.lost_s, one.after_s, one.unused_s)
        shares = (f"{100 * part / one.paid_s:.2f} %" for part in lost)
        rows.append(_row([trace.name, one.attempts, *shares, one.status or "the trace ended first"]))
    head = ["trace", "attempts", "before the first step", "pauses of saves", "trained and lost", "after the last step"]
    return [
        "\n## What the rest is\n", _row([*head, "attempts that never trained", "execution"]), _row(["---"] * 8), *rows,
    ]  # fmt: skip


def _cases(traces: Sequence[Trace], known: Known) -> list[str]:
    """On the hardest trace."""
    rows = list[str]()
    for name, (what, _) in CASES.items():
        if one := known[name].get(traces[0].name):
            ended = one.problem.partition("\n")[0].partition(":")[0] if one.status == "FAILED" else ""
            rows.append(_row([what, f"{one.share:.4f}", one.attempts, f"{one.paid_s / 3600:.1f}", ended]))
    head = _row(["assumed", "share", "attempts", "node-hours paid", "failed before the trace ended, with"])
    about = (
        f"All on the hardest trace, {traces[0].name}. A job fails where {LIMITS.recoveries} recoveries in a row commit no newer "
        "checkpoint\n(`limits.recoveries`): places that are taken back within minutes, and losses without a notice, do that."
    )
    return [f"\n## Other assumptions\n\n{about}\n", head, _row(["---"] * 5), *rows]


def _interval(traces: Sequence[Trace]) -> list[str]:
    """Young's rule."""
    assumed, rows = CASES[TABLE][1], list[str]()
    unheard = assumed.without_notice + assumed.silent
    for trace in traces:
        if trace.interruptions:
            between_s = sum(one.length for one in trace.stretches) / trace.interruptions
            every = [math.sqrt(2 * assumed.pause_s * apart_s) / 60 for apart_s in (between_s, between_s / unheard)]
            rows.append(_row([trace.name, *(f"{minutes:.1f}" for minutes in every)]))
    return [
        "\n## Which interval\n",
        f"Young's rule, sqrt(2 x cost of a save x time between losses), with a cost of {assumed.pause_s:g} s, in minutes. After a notice",
        f"a last checkpoint is written whatever the interval, so that only the losses without one count: {unheard:.0%} of them here.\n",
        _row(["trace", "if no loss had a notice", f"with {unheard:.0%} without one"]), _row(["---"] * 3), *rows,
    ]  # fmt: skip


def _assumptions() -> list[str]:
    one = CASES[TABLE][1]
    values = ", ".join(f"`{field.name}` {_shown(getattr(one, field.name))}" for field in fields(Assumed))
    versions = f"{platform.machine()}, Python {sys.version.split()[0]}, boto3 {version('boto3')}, seed 0."
    return [_ASSUMED, f"\n{values}.\n", versions]


def _shown(value: object) -> str:
    return " to ".join(f"{one:g}" for one in value) if isinstance(value, tuple) else str(value)


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


_ABOUT = f"""# Spot: what is paid, and what becomes progress

Written by `make bench-spot`. One job over each public trace of spot capacity ({SOURCE}, measured on AWS, one V100 a node), on a
virtual clock. The traces carry no licence, so that they are not part of this repository: the command says where to get them.

*Paid* is what AWS bills: the time from `running` to the end of each instance, over all attempts. *Progress* is the time of training, of
all nodes, whose steps are in the result. At least {LEAST_HARDEST} has to become progress on the hardest trace, which is the one with
the least mean up-time, and {LEAST} on the others; a checkpoint every ten minutes. *Every notice*: AWS gives the
notice of two minutes that it documents before each loss; the command fails if a figure is not reached. *One notice in ten lost*, as
everywhere else on this page: one loss in ten comes without a notice, and EC2 says for ten minutes that half of these nodes run."""

_ASSUMED = """
## What is real, and what is assumed

Real: the Train machine as the Workflow stack synthesises it, with its retries and its JSONata; the handlers of Admit, Launch with its
waits for capacity, the attendant, Sync and Terminate; of the agent the report (Reporter), the orders and the notice (OrderWatch),
which checkpoints become sets and are closed (Checkpoints), which set is restored (restore), and what an exit is called. Their calls go
to the fake AWS of the tests: 20 ms a call, events that come late or never, a stream that is late and doubles records, a clock of one
minute that is late.

A trace says how many nodes were up, or could be had, at each point. A job of as many nodes as the trace asked for can run while all of
them are there. In the moment in which there are fewer, so many of its nodes are taken. From the notice on nothing can be launched
there, or else until the end ("until it has", above). The job has one zone, that of the trace, waits for capacity as long as it may
(`max_wait_hours`), and never goes to on-demand.

Left out are minutes in which nothing happens: two minutes after all ranks train, until five minutes before the next loss, reports and
looks would say the same again. With them the figures are the same (a test compares both). The trainer saves in lockstep with its
interval; after an order it stops at once and saves; a rank whose peer is gone stands still until Terminate ends it. A node does not
power itself off.

A checkpoint has 1 GiB, but for the rows with 100 GB: these are saved in 8 s as well, to disks in the machine that take 12.5 GB/s, and
read from there in 8 s after they were fetched, where no row says otherwise. One that takes longer than the notice to save and to send
is not in S3 when the node ends, and the steps since the one before it are lost.

Not in it: types and zones to choose from, throttles of EC2, S3 that is slow or away, trainers that end without a checkpoint when they
are told to stop, and the rule that an instance which AWS takes in its first hour is not billed.

The peers are arithmetic over the same stretches, boots and losses (`benchmarks/spot/peers.py`). *Hourly, all anew* saves each hour,
hears no notice, and begins again as soon as there is capacity. *As SkyPilot*: saves as ours, sees a loss with its poll of 15 s, and
needs 137 s for a launch (its own median, boot and requirements included); hears no notice. *Bound* knows each stretch's end ahead: it
launches where this is worth it, saves once, just in time, and trains to the end. All of them pay from `running`.

Boots, events, tags and the clock are drawn as rehearsals draw them (`localaws/conditions.py`). EC2 does not bill what is `pending`
(user guide, "Instance lifecycle"): 4.9 s of it were measured for a c5.xlarge in 2021 (daemonology.net, "EC2 boot time benchmarking"),
16.4 to 16.6 s for six types from t3 to r7i (github.com/brevdev/ec2-coldboot-research). Commits and restores of 1 GiB took 1.5 and 2.0 s
on two cores ([checkpoints](checkpoints.md)); 4 and 8 s are reckoned with, for the network and for reading. Installing scikit-learn took
16 s in a first attempt; a later one fetches what was installed, in 2.9 s at most (decision 26). A save pauses the training while 1 GiB
goes from the GPU to memory: 0.64 s on an H100 with memory that is not pinned, 0.02 s with pinned memory (PyTorch's pull request 120378:
7.3 GiB in 4.66 and in 0.16 s). Nobody measured `import_s` and the share of losses without a notice: AWS calls the notice best effort
and gives no figure. All, in seconds:"""
