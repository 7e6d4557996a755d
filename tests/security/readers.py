"""What is read under which key: every kind of document, with the patterns of its keys made by the contract's own functions."""

from __future__ import annotations

from dataclasses import dataclass

from contract import items, keys
from contract.grid import GridPrefix
from contract.keys import BytesPrefix, CommitKind, JobPrefix
from tests.security.languages import GRID, HEX, JOB, NAME, NUMBER, REST, Pattern, literal

HOME, BYTES, TABLE = "home", "bytes", "table"


class Blank(int):
    """A number that is written as a mark, whatever the format, and stays one when it is divided."""

    def __format__(self, _: str) -> str:
        return "\ue001"

    def __str__(self) -> str:
        return "\ue001"

    def __floordiv__(self, _: int) -> Blank:
        return self


OWNER, A_NUMBER, A_NAME, ANYTHING, A_GRID = "\ue000", Blank(1), "\ue002", "\ue003", "\ue004"
"""Marks, which become patterns: a job's id, a number, a name without slashes, any text, a grid's id."""
A_DIGEST = "\ue005" * 64
MARKS = {"\ue001": NUMBER, "\ue002": NAME, "\ue003": REST, "\ue004": GRID, "\ue005": HEX}


def pattern(text: str, owner: Pattern = JOB) -> Pattern:
    """The keys that a function makes which was given marks."""
    found: Pattern = ()
    for letter in text:
        found += owner if letter == OWNER else MARKS.get(letter) or literal(letter)
    return found


@dataclass(frozen=True, slots=True)
class Reader:
    """A kind of document, and the keys under which somebody takes an object for it."""

    kind: str
    where: str
    text: str
    """With marks; of the table the partition key."""
    sort: str = ""

    def keys(self, owner: Pattern = JOB) -> Pattern:
        return pattern(self.text, owner)


_J, _B, _G = JobPrefix(OWNER), BytesPrefix(OWNER), GridPrefix(A_GRID)
S3_READERS = (
    Reader("job description", HOME, _J.description),
    Reader("job result", HOME, _J.result),
    Reader("wait of a job", HOME, _J.wait),
    Reader("page of a job", HOME, _J.page),
    Reader("list of artifacts", HOME, _J.artifacts(A_NUMBER)),
    Reader("code of a job", HOME, _J.code(A_NAME)),
    Reader("upload", HOME, keys.UPLOADS + ANYTHING),
    Reader("agent", HOME, keys.agent(A_DIGEST)),
    Reader("context of the platform", HOME, keys.own_context(A_NAME)),
    Reader("context from git", HOME, keys.CONTEXTS + A_NAME + "/" + A_NAME),
    Reader("record of the platform", HOME, keys.own_provenance(A_NAME, A_DIGEST)),
    Reader("list of parts of the platform", HOME, keys.own_parts(A_NAME, A_DIGEST)),
    Reader("base of the platform", HOME, keys.OWN_BASES + A_DIGEST + ".json"),
    Reader("grid", HOME, _G.description),
    Reader("rows of a query", HOME, _G.manifest),
    Reader("facts of a plan", HOME, _G.facts),
    Reader("lines of a plan", HOME, _G.lines(A_NUMBER)),
    Reader("work of a round", HOME, _G.work(A_NUMBER)),
    Reader("end of a grid", HOME, _G.stopped),
    Reader("record of a line", HOME, _G.records + ANYTHING),
    Reader("results", HOME, _G.results_csv),
    Reader("results", HOME, _G.results_jsonl),
    Reader("failed lines", HOME, _G.failed),
    Reader("report of a grid", HOME, _G.report),
    Reader("page of a grid", HOME, _G.page),
    # Sync and a restore read exact commits; a restore and the agent's thinning list them by their prefix.
    *(Reader("commit", BYTES, _B.commit(kind, A_NUMBER, A_NUMBER, A_NUMBER)) for kind in CommitKind),
    *(Reader("commit", BYTES, _B.commits(kind) + ANYTHING) for kind in CommitKind),
    # Of sets, read by the agents of the same job alone; Sync reads exact parts.
    Reader("remote command", BYTES, _B.remote_command(A_NUMBER, A_NUMBER)),
    Reader("remote command", BYTES, _B.remote_end(A_NUMBER, A_NUMBER)),
    Reader("remote command", BYTES, _B.remote(A_NUMBER) + ANYTHING),
    Reader("commit", BYTES, _B.plan(A_NUMBER, A_NUMBER)),
    Reader("commit", BYTES, _B.part(A_NUMBER, A_NUMBER, A_NUMBER)),
    Reader("commit", BYTES, _B.closed(A_NUMBER, A_NUMBER)),
    Reader("commit", BYTES, _B.unusable(A_NUMBER, A_NUMBER)),
    Reader("checkpoint file", BYTES, _B.checkpoints(A_NUMBER) + ANYTHING),
    Reader("environment", BYTES, _B.environments + ANYTHING),
    Reader("artifact", BYTES, _B.artifacts + ANYTHING),
    Reader("upload", BYTES, keys.UPLOADS + ANYTHING),
    Reader("bytes of a line", BYTES, _G.bytes(A_NUMBER) + ANYTHING),
    Reader("code of a line", BYTES, _G.code(A_NAME) + ANYTHING),
)


def _item(kind: str, key: items.ItemKey) -> Reader:
    return Reader(kind, TABLE, key.partition, key.sort)


OWN = items.userid("AROAEXAMPLEOFANODE01", "i-0a")
"""Partition of the instance whose rights are looked at."""
ANOTHERS = items.userid("AROAEXAMPLEOFANODE01", "i-0b")
TABLE_READERS = (
    _item("admitted job", items.job(OWNER)),
    Reader("launch intent", TABLE, items.launches(OWNER), ANYTHING),
    _item("closed attempt", items.closed(OWNER, A_NUMBER)),
    _item("end of an attempt", items.ended(OWNER, A_NUMBER)),
    _item("order", items.order(OWNER, A_NUMBER)),
    _item("notice of a stall", items.stall_notice(OWNER, A_NUMBER)),
    _item("notice of a recovery", items.recovery_notice(OWNER, A_NUMBER)),
    _item("notice of an end", items.end_notice(OWNER)),
    Reader("untold end", TABLE, items.UNTOLD, ANYTHING),
    _item("unhealthy node", items.unhealthy(OWNER, A_NUMBER, A_NUMBER)),
    _item("session", items.session(OWNER, A_NUMBER)),
    _item("metric over steps", items.curve(OWNER)),
    Reader("waiting Train state", TABLE, items.WAITING, ANYTHING),
    Reader("wait for capacity", TABLE, items.CAPACITY, ANYTHING),
    Reader("empty place", TABLE, items.EMPTY, ANYTHING),
    _item("turn of the launcher", items.LAUNCH_TURN),
    _item("admission closed", items.ADMISSION_CLOSED),
    _item("last pass", items.LAST_PASS),
    _item("error that waits", items.awaiting(0)),
    Reader("launched region", TABLE, items.REGIONS, ANYTHING),
    Reader("marks", TABLE, items.MARKS, ANYTHING),
    Reader("groups", TABLE, items.GROUPS, ANYTHING),
    Reader("report of another node", TABLE, ANOTHERS, items.REPORT),
    Reader("own item", TABLE, OWN, ANYTHING),
)


READ_BY = {
    JobPrefix: {"description", "result", "wait", "page", "artifacts", "code"},
    BytesPrefix: {
        *("commit", "commits", "of_set", "plan", "part", "closed", "unusable"),
        *("remote", "remote_command", "remote_end"),
        *("checkpoints", "checkpoint", "pack", "artifacts", "artifact"),
        *("environments", "environment", "environment_file"),
    },
    GridPrefix: {
        *("description", "facts", "lines", "work", "stopped", "records", "record", "results_csv", "results_jsonl"),
        *("failed", "manifest", "report", "page", "bytes", "checkpoints", "code", "pod_notes", "submitted"),
    },
}
"""What makes keys in the contract; each is in the table above."""
ITEMS = {
    *(
        "job",
        "launch",
        "closed",
        "ended",
        "order",
        "stall_notice",
        "recovery_notice",
        "end_notice",
        "untold",
        "session",
        "waiting",
        "awaited",
        "empty",
        "awaiting",
        "region",
        "marks",
        "groups",
        "unhealthy",
        "curve",
    ),
    *("node_report", "node_order", "node_credentials"),
}
