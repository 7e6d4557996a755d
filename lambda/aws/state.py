"""The state of jobs and of the deployment, as the contract's documents in the table (docs/reference/state.md lists every access)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from aws.errors import Raced
from aws.facts import Given, Pass, Seen
from aws.table import HELD_UP, HeldUp, Item, Table
from contract import items
from contract.aws_errors import code_of
from contract.codec import Garbled, compact, decode, encode
from contract.curves import Curve
from contract.events import Event
from contract.groups import Taken, TakenGroups
from contract.health import UnhealthyNode
from contract.intents import Intent, Step
from contract.items import ItemKey
from contract.jobs import Job
from contract.orders import Order
from contract.reports import NodeReport
from contract.sessions import AttemptSessions, SessionCredentials

T = TypeVar("T")
TOLD = b'{"told": true}'
CAUSE = 2000
"""Characters of a cause that is noted with an attempt's end: report.json and the execution have all of it."""
AT_ONCE = 10
"""Items written side by side: as many as a client has connections."""
COPIES_S = 30.0
"""How long copies for nodes are begun. 512 need six seconds of computing at the deployed size; the code of a job can have each write of
its nodes' items wait for seconds, by transactions on them, and other jobs' looks wait behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An intent with the item whose next version replaces it."""

    intent: Intent
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """People were told of something, or, where it is not `whole`, a function began to tell them."""

    at: float
    """UTC epoch seconds."""
    whole: bool
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """When all instances of an attempt had begun to end, UTC epoch seconds, and why it ended; empty where it ended well."""

    at: float
    error: str = ""
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwedEnd:
    """A job of whose end people are to be told, and have not been."""

    job: str
    execution: str
    """ARN."""
    owner: str
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A Train state that waits for an attempt of a job."""

    job: str
    attempt: int
    token: str
    key: ItemKey


class State(Table):
    """The table, read and written as documents."""

    def job(self, job: str) -> Job | None:
        found = self.get(items.job(job))
        return decode(Job, found.document) if found else None

    def keep_job(self, job: Job) -> None:
        """Writes the job as it was admitted; the home bucket decides to whom its name belongs."""
        self.put(items.job(job.id), encode(job), expires=_expiry(job))

    def intents(self, job: str, attempt: int) -> list[Held]:
        """The walks of the attempt, in their order."""
        found = self.query(items.launches(job), items.of_attempt(attempt))
        return [Held(intent=decode(Intent, item.document), item=item) for item in found]

    def launch(self, job: str, attempt: int) -> Step | None:
        """The rung on which the attempt was launched, with its answer."""
        walk = self.launched(job, attempt)
        return walk.launched if walk else None

    def launched(self, job: str, attempt: int) -> Intent | None:
        """The walk that launched the attempt."""
        walks = (held.intent for held in reversed(self.intents(job, attempt)))
        return next((walk for walk in walks if walk.launched is not None), None)

    def create_intent(self, job: Job, intent: Intent) -> Held:
        """Raises Raced where the walk has its intent already."""
        key = items.launch(intent.job, intent.attempt, intent.walk)
        return Held(intent=intent, item=self.create(key, encode(intent), expires=_expiry(job)))

    def replace_intent(self, job: Job, intent: Intent, held: Held) -> Held:
        """Raises Raced where another writer has replaced `held`."""
        return Held(intent=intent, item=self.replace(held.item, encode(intent), expires=_expiry(job)))

    def close(self, job: str, attempt: int) -> None:
        """Closes the attempt: from now on nothing is launched for it."""
        self.put(items.closed(job, attempt), b"{}", expires=time.time() + items.LONGEST_S)

    def closed(self, job: str, attempt: int) -> bool:
        return self.get(items.closed(job, attempt)) is not None

    def note_end(self, job: str, attempt: int, at: float, problem: Mapping[str, Any] | None = None) -> None:
        """Notes when all instances of the attempt had begun to end, and why it ended; what was noted first stays."""
        told = {name: str((problem or {}).get(name, ""))[:CAUSE] for name in ("error", "cause")}
        note = _as_json({"at": at, **{name: _whole_letters(text) for name, text in told.items() if text}})
        try:
            self.create(items.ended(job, attempt), note, expires=time.time() + items.LONGEST_S)
        except Raced:
            return

    def endings(self, job: str) -> dict[int, AttemptEnd]:
        """How attempts ended, as far as that is noted: one query."""
        found = [(item.key.sort.partition("#"), item) for item in self.query(items.endings(job))]
        told = {int(number): json.loads(item.document) for (number, _, what), item in found if what}
        return {
            number: AttemptEnd(at=float(one["at"]), error=one.get("error", ""), cause=one.get("cause", ""))
            for number, one in told.items()
        }

    def walks(self, job: str) -> list[Intent]:
        """All walks of all attempts, in their order: one query."""
        return [decode(Intent, item.document) for item in self.query(items.launches(job))]

    def ends(self, job: str) -> dict[int, float]:
        """When all instances of each attempt had begun to end, UTC epoch seconds, as far as that is noted: one query."""
        return {number: end.at for number, end in self.endings(job).items()}

    def taken_groups(self, region: str) -> tuple[tuple[Taken, ...], Item | None]:
        """Which jobs have which security groups of the region, and the item that says so, None where there is none yet."""
        found = self.get(items.groups(region))
        return (decode(TakenGroups, found.document).taken, found) if found else ((), None)

    def take_groups(self, region: str, taken: tuple[Taken, ...], before: Item | None) -> None:
        """Raises Raced where another writer has replaced the item `before`, or has created it where it was None."""
        document = encode(TakenGroups(taken=taken))
        if before is None:
            self.create(items.groups(region), document)
        else:
            self.replace(before, document)

    def last_attempt(self, job: str) -> int:
        """The newest attempt that has an intent; 0 before the first launch."""
        newest = next(self.query(items.launches(job), newest_first=True), None)
        return int(newest.key.sort.partition("#")[0]) if newest else 0

    def close_admission(self, reason: str) -> None:
        """Closes admission: from now on Admit refuses every request with this reason."""
        self.put(items.ADMISSION_CLOSED, _as_json({"reason": reason}))

    def open_admission(self, reason: str) -> None:
        """Opens admission where it is closed for this reason; one that a person closed, a person has to open."""
        if self.admission_closed() == reason:
            self.delete(items.ADMISSION_CLOSED)

    def admission_closed(self) -> str | None:
        """Why admission is closed; None where it is open. An item that cannot be read closes it as well."""
        found = self.get(items.ADMISSION_CLOSED)
        if found is None:
            return None
        try:
            return str(json.loads(found.document)["reason"])
        except (ValueError, KeyError, TypeError):
            return "the item that closes admission gives no reason"

    def note_region(self, region: str) -> None:
        """Notes, before the first launch there, that the reaper has to look at the region."""
        self.ensure(items.region(region), b"{}")

    def launched_regions(self) -> set[str]:
        """Every region where anything was ever launched."""
        return {item.key.sort for item in self.query(items.REGIONS)}

    def order(self, job: str, attempt: int, *, now: float) -> Given | None:
        """The attempt's order with its age at `now`; None where there is none."""
        found = self.get(items.order(job, attempt))
        return Given(order=decode(Order, found.document), age_s=max(0.0, now - found.at)) if found else None

    def create_order(self, job: Job, attempt: int, order: Order) -> None:
        """Raises Raced where the attempt has its order already."""
        self.create(items.order(job.id, attempt), encode(order), expires=_expiry(job))

    def read_notice(self, key: ItemKey) -> Notified | None:
        """Reads when people were last told of what `key` stands for; None for never."""
        found = self.get(key)
        return Notified(at=found.at, whole=found.document == TOLD, item=found) if found else None

    def tell(self, key: ItemKey, before: Notified | None, *, whole: bool) -> Notified:
        """Notes that people are about to be told, or, `whole`, have been. Raises Raced where another writer has noted it since `before`."""
        document = TOLD if whole else _as_json({"told": False, "by": uuid.uuid4().hex})
        expires = time.time() + items.LONGEST_S
        item = (
            self.create(key, document, expires=expires)
            if before is None
            else self.replace(before.item, document, expires=expires)
        )
        return Notified(at=item.at, whole=whole, item=item)

    def owe_end(self, job: Job) -> None:
        """Notes that people have to be told of the job's end."""
        told = {"execution": job.execution, "owner": job.owner, "events": [one.value for one in job.notify]}
        self.put(items.untold(job.id), _as_json(told), expires=time.time() + items.LONGEST_S)

    def untold(self) -> list[OwedEnd]:
        """Every job of whose end people have to be told: one query."""
        told = ((item.key.sort, json.loads(item.document)) for item in self.query(items.UNTOLD))
        return [
            OwedEnd(job=job, execution=one["execution"], owner=one["owner"], events=tuple(map(Event, one["events"])))
            for job, one in told
        ]

    def settle_end(self, job: str) -> None:
        """Notes that people know of the job's end, so that no message is owed."""
        self.delete(items.untold(job))

    def give_order(self, job: Job, role: str, instances: Sequence[str], order: Order) -> None:
        """Writes each node's copy of the order, whatever is there."""
        self._write_each([items.node_order(role, one) for one in instances], encode(order), _expiry(job))

    def _write_each(self, keys: Sequence[ItemKey], document: bytes, expires: float) -> None:
        """Raises HeldUp where copies could not be written for a reason that their nodes can bring about; the others are written."""
        until = time.time() + COPIES_S

        def write(key: ItemKey) -> None:
            if time.time() > until:
                raise HeldUp(f"copies for {len(keys)} nodes took longer than {COPIES_S:g} s")
            try:
                self.put(key, document, expires=expires)
            except ClientError as problem:
                if code_of(problem) in HELD_UP:
                    raise HeldUp(f"no copy for {key.partition}: {problem}") from problem
                raise

        with ThreadPoolExecutor(AT_ONCE) as pool:
            written = [pool.submit(write, key) for key in keys]
        for each in written:  # all of them ran: an error of one, raised at once, would cancel those behind it
            each.result()

    def note_unhealthy(self, job: Job, nodes: Iterable[UnhealthyNode]) -> None:
        """Notes nodes because of whose machines an attempt ends; again where it was noted before."""
        for one in nodes:
            self.put(items.unhealthy(job.id, one.attempt, one.rank), compact(one), expires=_expiry(job))

    def unhealthy(self, job: str) -> list[UnhealthyNode]:
        """The unhealthy nodes of all attempts of the job, in the order of attempts and ranks, without those that cannot be read: neither
        the end of an attempt nor the next one waits for them."""
        found = (_read(UnhealthyNode, item) for item in self.query(items.unhealthy_of(job)))
        return [one for one in found if one is not None]

    def curve(self, job: str) -> Curve:
        """The metric over steps as far as it was kept. Raises Garbled where it cannot be read."""
        found = self.get(items.curve(job))
        return decode(Curve, found.document) if found else Curve()

    def keep_curve(self, job: Job, curve: Curve) -> None:
        self.put(items.curve(job.id), compact(curve), expires=_expiry(job))

    def sessions(self, job: str, attempt: int) -> AttemptSessions:
        """What is known of the sessions of the attempt."""
        found = self.get(items.session(job, attempt))
        return decode(AttemptSessions, found.document) if found else AttemptSessions()

    def note_sessions(self, job: Job, attempt: int, known: AttemptSessions) -> None:
        self.put(items.session(job.id, attempt), compact(known), expires=_expiry(job))

    def give_credentials(self, role: str, instances: Sequence[str], credentials: SessionCredentials) -> None:
        """Writes each node's copy of the credentials."""
        self._write_each(
            [items.node_credentials(role, one) for one in instances], compact(credentials), credentials.expires
        )

    def reports(self, role: str, instances: Sequence[str]) -> tuple[list[Seen], float]:
        """The reports of these instances that there are, and the time by AWS's clock at which their ages hold; aws.heard says what they
        mean together."""
        seen, now, keys = list[Seen](), time.time(), [items.node_report(role, one) for one in instances]
        for found, now in self.batch(keys, most=items.most_report(len(keys))):
            for item in found:
                writer = item.key.partition.partition(":")[2]
                seen.append(Seen(instance=writer, report=_read(NodeReport, item), age_s=now - item.at))
        return seen, now

    def keep_token(self, token: Token) -> None:
        """Keeps the token until it is used up."""
        told = {"job": token.job, "attempt": token.attempt, "token": token.token}
        self.put(token.key, _as_json(told), expires=time.time() + items.LONGEST_S)

    def tokens(self, job: str | None = None) -> list[Token]:
        """Every Train state that waits, or those of one job."""
        return list(map(_token, self.query(items.WAITING, "" if job is None else items.waiting_of(job))))

    def tokens_between(self, first: str, last: str) -> list[Token]:
        """Those whose sort keys lie between these two, both included."""
        return list(map(_token, self.between(items.WAITING, first, last)))

    def may_await(self, job: str, *, lasts_s: float) -> bool:
        """Whether the caller shall wait until the job's error is explained: within `lasts_s` no function has begun to for this job, and not
        too many have for others. Where it shall not, the next look of the clock finds the explanation."""
        now = time.time()
        slots = [(key, self.get(key)) for key in map(items.awaiting, range(items.AWAITING))]
        taken = [found for _, found in slots if found is not None and now < found.at + lasts_s]
        if len(taken) == len(slots) or any(json.loads(found.document)["job"] == job for found in taken):
            return False
        key, found = next((key, found) for key, found in slots if found not in taken)
        # Of two equal documents both would count as written.
        document, expires = _as_json({"job": job, "by": uuid.uuid4().hex}), now + items.KEPT_S
        try:
            if found is None:
                self.create(key, document, expires=expires)
            else:
                self.replace(found, document, expires=expires)
        except Raced:
            return False
        return True

    def last_pass(self) -> Pass | None:
        """The attendant's last pass over all jobs, None where none is known."""
        found = self.get(items.LAST_PASS)
        if found is None:
            return None
        try:
            return Pass(
                age_s=max(0.0, time.time() - found.at), gaps_s=tuple(map(float, json.loads(found.document)["gaps_s"]))
            )
        except (ValueError, KeyError, TypeError):
            return None

    def note_pass(self, gaps_s: Sequence[float]) -> None:
        self.put(items.LAST_PASS, _as_json({"gaps_s": gaps_s}))


def _token(item: Item) -> Token:
    told = json.loads(item.document)
    return Token(job=told["job"], attempt=told["attempt"], token=told["token"], key=item.key)


def _read(kind: type[T], item: Item) -> T | None:
    try:
        return decode(kind, item.document)
    except Garbled:
        return None


def _expiry(job: Job) -> float:
    return job.deadline + items.KEPT_S


def _whole_letters(text: str) -> str:
    """The text without halves of surrogate pairs, which cannot be written: code of a job may have said it."""
    return text.encode(errors="replace").decode()


def _as_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
