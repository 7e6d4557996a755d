"""Defines the faults of a rehearsal: their names, their keys, and how the product reacts to each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from contract import tags
from rehearsal.fault_keys import (
    AFTER,
    ALL,
    ATTEMPTS,
    BOOT,
    CLOSED,
    EVERY_RANK,
    GRID,
    HOW_AWAY,
    HOW_DEAD,
    JOB,
    LASTING,
    LATER_ON_NODE,
    LINE,
    OF_SPOT,
    SECOND,
    STATES,
    STEP,
    FaultKey,
    FaultKind,
    any_seconds,
    choice,
    moment,
    name_nearest,
    number,
    seconds,
)
from rehearsal.fault_marks import choose_rank, job_of, line_of, nodes_of, rank_of
from rehearsal.machine_faults import MACHINE_FAULTS
from rehearsal.spot_faults import SPOT_FAULTS
from rehearsal.storage_faults import STORAGE_FAULTS


class UnknownFault(ValueError):
    """The fault, key or value does not exist; the message lists those that do."""


FAULTS: dict[str, FaultKind] = MACHINE_FAULTS | {
    "abort-in-state": FaultKind(
        "a person stops the execution (StopExecution), once, when it is in a state; no Catch and no later state runs",
        "The end of the execution wakes the cleanup, which closes the job's attempts, ends its instances and writes its report.",
        {
            "state": choice("Train", "which", *STATES),
            "after": seconds("0", "from entering the state to the stop"),
            "job": JOB,
        },
    ),
    "agent-crash": FaultKind(
        "the node's agent is killed by SIGKILL, its training process lives on",
        "User data sees it at once and powers the machine off, which ends the training too. NodeLost: a new attempt from the "
        "newest checkpoint, or Failed when none is left.",
        {"at": moment("training", "when", least="agent"), **LATER_ON_NODE},
    ),
    "attendant-dead": FaultKind(
        "no invocation of the attendant does anything: by clock, event or token",
        "A lost heartbeat, and then an invocation that fails, only lead to another look; the nodes are left alone. The job goes "
        "on, or ends, as soon as the attendant lives again.",
        {"seconds": seconds("600", "how long"), "after": AFTER, "how": HOW_DEAD},
        handlers="attendant.",
    ),
    "capacity-away": FaultKind(
        "places that it names have no capacity (InsufficientInstanceCapacity), or are refused otherwise; empty keys name all",
        "The launcher tries the next rung: another zone, market, type or region. A ladder without one waits, or fails. A quota closes the "
        "places that share it, one of IOPS the region; an unknown instance profile is asked for again, as is a throttled launch.",
        {
            "region": FaultKey("", "of the place", "a region", JOB.fits),
            "zone": FaultKey("", "of the place", "a zone", JOB.fits),
            "type": FaultKey("", "of the instances", "an EC2 type", JOB.fits),
            "market": choice("", "of the place", "", "on-demand", "spot"),
            "as": choice("capacity", "what EC2 says", "capacity", "quota", "iops", "profile", "throttled"),
            "attempt": FaultKey(
                "", "of the job; empty: every attempt", OF_SPOT["attempt"].allowed, OF_SPOT["attempt"].fits
            ),
            "job": JOB,
            **LASTING,
        },
    ),
    "child-killed": FaultKind(
        "a child of a grid is killed by SIGKILL, once, some time after its start",
        "Batch starts the next attempt, which adopts the training by its name.",
        {"line": LINE, "after": seconds("30", "from its start"), "job": GRID},
    ),
    "cleanup-dead": FaultKind(
        "no invocation of the cleanup function does anything",
        "The message comes back, time after time, until the function lives again, and its errors are an alarm. Meanwhile the "
        "reaper ends the instances at the second look after its grace period.",
        {**LASTING, "how": HOW_DEAD},
        handlers="cleanup.",
    ),
    "block-ends": FaultKind(
        "AWS ends every node of the job's Capacity Block, long before its time and without a notice",
        "NodeLost: a new attempt in the block from the newest checkpoint, if the block still takes launches. At its own time a block ends "
        "no job without a checkpoint: the deadline is before it.",
        {
            "step": STEP,
            "closed": CLOSED,
            "attempts": ATTEMPTS,
            "job": JOB,
        },
    ),
    "cleanup-event-lost": FaultKind(
        "the event that tells of the execution's end never arrives",
        "The reaper ends what is left at the second look after its grace period. The cleanup's clock, which looks every five minutes, has "
        "the report written 22 to 27 minutes after the end.",
        {"job": JOB},
    ),
    "clock-late": FaultKind(
        "each tick of the one-minute clock comes this much later",
        "The attendant sees everything this much later; the heartbeat is longer than that. Nothing else changes.",
        {"seconds": seconds("120", "how late")},
    ),
    "clock-skew": FaultKind(
        "the node's clock is wrong: `date`, systemd's timers and the agent's `time.time()` (by stand-ins of the rehearsal); "
        "not the trainer's clock, not the signatures of AWS calls",
        "Reports carry wrong times, and no decision uses them; log lines are dated by AWS's clock, and all arrive. The node's own order "
        "ahead of the deadline and its power-off timer move by the skew.",
        {
            "seconds": FaultKey("300", "ahead; below 0: behind", "seconds", any_seconds),
            "rank": EVERY_RANK,
            "job": JOB,
        },
    ),
    "create-response-lost": FaultKind(
        "the answer to CreateTrainingJob is lost after the training exists",
        "The child finds the training under its name, sees by its tags that it is its own, and adopts it.",
        {"line": LINE, "job": GRID},
    ),
    "database-away": FaultKind(
        "the Data API answers that the catalogue's database is not available",
        "Jobs, grids and the drain go on. A grid whose lines a query names is not begun until the database answers, or is refused.",
        LASTING,
    ),
    "disk-full": FaultKind(
        "every write to a file fails on the node, by a limit on the size of files (RLIMIT_FSIZE 0): the error is EFBIG, `File too "
        "large`, where a full disk says ENOSPC; empty files, links and folders can still be made",
        "While training: the trainer's own error, TrainingFailed, with its last lines. Before that: NodeLost, a new attempt.",
        {"at": moment("training", "when"), **LATER_ON_NODE},
    ),
    "events-dropped": FaultKind(
        "no event (EC2 state, S3 object, execution status) is delivered; the clock goes on",
        "The clock alone brings the job to its end.",
        LASTING,
    ),
    "events-late": FaultKind(
        "every event arrives this much later",
        "The clock sees it first; an event that arrives after the end finds nothing to do.",
        {"seconds": seconds("120", "how much later")},
    ),
    "keys-short": FaultKind(
        "credentials of a job expire this long after they were given; AWS gives an hour",
        "The attendant renews them at every look. A node whose credentials have expired says so, trains on, and saves later.",
        {"seconds": seconds("200", "how long they are valid"), "job": JOB},
    ),
    "late-tags": FaultKind(
        "the tags of the launch and of the master's address reach the node's metadata this late",
        "The agent waits for them, up to the boot allowance. Nothing else changes.",
        {"seconds": seconds("300", "from the call that sets a tag"), "job": JOB},
    ),
    "freeze": FaultKind(
        "every process of the node stands still (SIGSTOP), its agent among them; its connections stay open",
        "Its peers hang with it. Silent for longer than allowed: NodeLost, a new attempt.",
        {"at": moment("training", "when", least="agent"), **LATER_ON_NODE},
    ),
    "no-capacity": FaultKind(
        "the first rungs that are tried answer InsufficientInstanceCapacity, once each",
        "The launcher tries the next rung.",
        {"rungs": number("1", "how many", least=1), "job": JOB},
    ),
    "no-network": FaultKind(
        "the node reaches nothing: neither AWS nor its metadata answers; nodes still reach each other",
        "No report: beyond the boot allowance, or the allowed silence, NodeLost and a new attempt. With nothing to terminate "
        "it, the node's own timer powers it off.",
        {"at": moment("boot", "when"), **LATER_ON_NODE},
    ),
    "node-lost": FaultKind(
        "a node vanishes without notice",
        "NodeLost, whatever its peers die of: a new attempt from the newest checkpoint. Where EC2 calls it running, once its silence "
        "is longer than allowed.",
        {
            "step": STEP,
            "closed": CLOSED,
            "rank": SECOND,
            "attempts": ATTEMPTS,
            "running": seconds("0", "how long EC2 calls it running all the same: for minutes, where a host fails"),
            "job": JOB,
        },
    ),
    "quota-reached": FaultKind(
        "CreateTrainingJob answers ResourceLimitExceeded: the account has used up its quota",
        "The child waits and asks again, up to its patience (a day).",
        {"seconds": seconds("120", "how long"), "after": AFTER, "job": GRID},
    ),
    "reaper-down": FaultKind(
        "no invocation of the reaper does anything: it sends no heartbeat",
        "The alarm on its silence goes off within twenty minutes, and says OK once it lives again. The other layers go on.",
        {
            **LASTING,
            "how": choice("silent", "as if its schedule were off, an error, or a time-out", "silent", "fails", "hangs"),
        },
        handlers="reaper.",
    ),
    "reservation-full": FaultKind(
        "another account has taken what was left of the reservation that the launch names (ReservationCapacityExceeded)",
        "The job waits as long as it may, and launches nothing elsewhere.",
        {**LASTING, "job": JOB},
    ),
    "response-lost": FaultKind(
        "the answer to the first RunInstances is lost after the instances exist",
        "The launcher repeats the same call with its token and gets the same instances.",
        {"job": JOB},
    ),
    "sagemaker-throttled": FaultKind(
        "CreateTrainingJob and DescribeTrainingJob answer ThrottlingException, whoever asks",
        "The children ask again, further and further apart; no line is lost or created twice.",
        {"seconds": seconds("60", "how long"), "after": AFTER},
    ),
    "session-service-away": FaultKind(
        "STS begins no session: no node gets credentials for its job, or new ones",
        "Train's heartbeats go on, and running nodes have keys for half an hour at least. Beyond that they train on, keep what they "
        "would save on disk, and save it once they have new credentials.",
        {"seconds": seconds("600", "how long"), "after": AFTER, "how": HOW_AWAY, "job": JOB},
    ),
    "slow-boot": FaultKind(
        "the first line of user data runs this long after the launch",
        "The attendant waits for the first report, up to the boot allowance (900 s). Beyond it: NodeLost.",
        {"seconds": seconds("600", "how long"), "rank": EVERY_RANK, "job": JOB},
    ),
    "spot-interrupted": FaultKind(
        "the instances of a line's managed spot training are taken away: SIGTERM, 120 s, SIGKILL",
        "SageMaker waits for instances and starts the command again, with the checkpoints in place.",
        {
            "line": LINE,
            "after": seconds("60", "from the start of the command"),
            "times": number("1", "how often", least=1),
            "job": GRID,
        },
    ),
    "stop-lost": FaultKind(
        "what a stopped execution waits for (a build, a child of a grid, another execution) is not stopped with it: Step Functions "
        "promises no more than its best effort",
        "The cleanup of a grid ends its children all the same; a build ends at its own time-out.",
        {"job": JOB},
    ),
    "task-retired": FaultKind(
        "Fargate retires the task of a child, once: SIGTERM, 30 s, SIGKILL, without a call to Batch",
        "The child asks Batch, leaves its training running, and the next attempt adopts it.",
        {"line": LINE, "after": seconds("30", "from its start"), "job": GRID},
    ),
    "terminate-refused": FaultKind(
        "TerminateInstances refuses the job's instances, as with termination protection (OperationNotPermitted)",
        "Terminate asks again until its patience is over; the cleanup and the reaper go on asking. A refusal of the "
        "reaper's call is a message and an alarm; it ends the instances once it may.",
        {**LASTING, "job": JOB},
    ),
    "terminator-dead": FaultKind(
        "no invocation of the Terminate step's function does anything",
        "Terminate is asked again until its patience is over, then the execution ends by error, which wakes the cleanup.",
        {**LASTING, "how": HOW_DEAD},
        handlers="terminator.",
    ),
    "timer-off": FaultKind(
        "no timer of the node's systemd ever fires, its power-off timer included",
        "The other layers end the node.",
        {"rank": EVERY_RANK, "job": JOB},
    ),
    "trainer-hang": FaultKind(
        "the training of the node stands still (SIGSTOP to the command and all that it started) while its agent lives and reports",
        "Its peers wait for it. Once the minutes of `stall` in the request are over, people are told; or every node writes stacks and the "
        "state of its devices to its log, and a new attempt begins (Stalled), or the job ends. Without `stall` nothing happens until "
        "the deadline.",
        {"at": moment("training", "when", least="training"), **LATER_ON_NODE},
    ),
    "user-data-fails": FaultKind(
        "a line of the user data fails (its second is the first after `#!/bin/bash`), or its shell is killed there",
        "The script's trap powers the machine off, at the latest where a later step needs what the line did. A killed shell has no "
        "trap: the boot allowance ends the attempt, the node's timer the node, whichever comes first. NodeLost, a new attempt.",
        {
            "line": number("2", "which", least=2),
            "how": choice("fails", "the line is `false`, or the shell gets SIGKILL", "fails", "killed"),
            "rank": EVERY_RANK,
            "attempts": ATTEMPTS,
            "job": JOB,
        },
    ),
}
FAULTS |= STORAGE_FAULTS | SPOT_FAULTS


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that was asked for. Raises UnknownFault if it does not exist."""

    name: str
    given: Mapping[str, str]
    since: float | None = None
    """When it began, on the monotonic clock; None for the beginning of all."""

    def __post_init__(self) -> None:
        kind = FAULTS.get(self.name)
        if kind is None:
            raise UnknownFault(f"--fault {self.name}: there is no such fault{name_nearest(self.name, FAULTS)}")
        for key, value in self.given.items():
            if key not in kind.keys:
                raise UnknownFault(f"--fault {self.name}: it has no key {key!r}{name_nearest(key, kind.keys)}")
            if not kind.keys[key].fits(value):
                raise UnknownFault(f"--fault {self.name}: {key} is {value!r}; allowed: {kind.keys[key].allowed}")
        if self.given.get("closed") and "at" in kind.keys and self.text("at") == BOOT:
            raise UnknownFault(
                f"--fault {self.name}: closed is for a later moment than at={BOOT}, when no checkpoint is there"
            )

    def text(self, key: str) -> str:
        return self.given.get(key, FAULTS[self.name].keys[key].default)

    def seconds(self, key: str) -> float:
        """Returns the key's real-world seconds; infinity if the default is for ever."""
        return float(self.text(key) or "inf")

    def number(self, key: str) -> int:
        return int(self.text(key))

    @property
    def handlers(self) -> str:
        """Prefix of the handlers whose functions are dead while the fault lasts; empty for none."""
        return FAULTS[self.name].handlers

    def meets(self, marks: Mapping[str, str]) -> bool:
        """Whether it applies to the node, line or execution with these marks; a key that the fault lacks limits nothing."""
        keys = FAULTS[self.name].keys
        return (
            ("job" not in keys or self.text("job") in {"", job_of(marks)})
            and (keys.get("line") is not LINE or self.text("line") in {ALL, line_of(marks)})
            and ("rank" not in keys or choose_rank(self, nodes_of(marks)) in {ALL, str(rank_of(marks))})
            and ("attempt" not in keys or self.text("attempt") in {"", marks.get(tags.ATTEMPT, "")})
            and ("attempts" not in keys or int(marks.get(tags.ATTEMPT, "0")) <= self.number("attempts"))
        )


def to_faults(faults: Mapping[str, Mapping[str, str]] | Iterable[Fault]) -> tuple[Fault, ...]:
    """Returns faults from faults, or from keys by fault name. Raises UnknownFault."""
    if isinstance(faults, Mapping):
        return tuple(Fault(str(name), given) for name, given in faults.items())
    return tuple(faults)


def parse_faults(given: list[str]) -> tuple[Fault, ...]:
    """Parses the command line's faults: each `NAME` or `NAME:key=value,...`. Raises UnknownFault."""
    return tuple(map(_parsed, given))


def _parsed(text: str) -> Fault:
    name, _, rest = text.partition(":")
    values: dict[str, str] = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = pair.partition("=")
        if not equals or key in values:
            problem = "is given twice" if equals else "has no value; allowed: key=value"
            raise UnknownFault(f"--fault {name}: {key} {problem}")
        values[key] = value
    return Fault(name, values)


def table() -> str:
    """Returns the text for `--help`: a line per fault, with its keys and their defaults."""
    lines = []
    for name, kind in FAULTS.items():
        keys = ", ".join(f"{key}={one.default}" for key, one in kind.keys.items())
        lines.append(f"  {name:16} {kind.what}" + (f"\n{'':18} ({keys})" if keys else ""))
    return "\n".join(lines)
