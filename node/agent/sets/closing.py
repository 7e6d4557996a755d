"""Closes the sets of an attempt to which every rank has answered, and says when no set will ever be whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from agent.position import Position
from agent.retention import History, history
from agent.sets.outcomes import Outcome, Result, is_hopeless, judge_commits, judge_parts
from agent.sets.state import SetState
from agent.store import Store
from contract.codec import decode, encode
from contract.commits import CheckpointSet, Commit, Missed, Part, SetPlan
from contract.keys import LAST_SET, BytesPrefix, CommitKind

AT_A_TIME = 8
"""Parts that are read side by side: there is one of each rank."""


class NeverWhole(Exception):
    """The ranks do not save what can be restored together; the message says what to do."""


class Closer:
    """Of one rank in one attempt. All ranks may close a set at once: they write the same."""

    def __init__(
        self, place: Position, store: Store, state: SetState, *, now: Callable[[], float], note: Callable[[str], None]
    ) -> None:
        self._place, self._store, self._state, self._now, self._note = place, store, state, now, note
        self._keys = BytesPrefix(place.job.id)
        self._own: Commit | None = None

    def list_history(self) -> History:
        return history(self._store.keys(self._keys.commits(CommitKind.CHECKPOINTS)))

    def settle(self, own: Commit | None) -> History:
        """Closes each set of this attempt to which the last rank has answered. `own`: this rank's newest part, which then need not be
        read. Raises NeverWhole."""
        self._own = own
        known, state, reason = self.list_history(), self._state, ""
        attempt, ranks = self._place.attempt, self._place.ranks
        for number, parts in sorted(known.answered(attempt, ranks).items()):
            if number in state.plans and (attempt, number) not in known.closed:
                known, reason = self._close(known, number, parts)
        state.unsettled = False
        closed = [number for of, number in known.closed if of == attempt and number in state.plans]
        if closed:
            state.closed_step = max(state.closed_step, state.plans[max(closed)].step, 0)
            state.closed_number, state.has_older = max(closed), True
        answered = known.answered(attempt, ranks)
        blamed = {number: parts for number, parts in answered.items() if not self._is_openers_own(number, parts)}
        since_s = 0.0 if state.opened_at is None else self._now() - state.opened_at
        if is_hopeless(blamed, any_closed=bool(known.closed), since_s=since_s):
            why = reason or self._why(known)
            raise NeverWhole(f"none of {len(answered)} checkpoints was whole: {why}")
        return known

    def _is_openers_own(self, number: int, parts: Mapping[int, Part]) -> bool:
        """Whether only the rank that opened a set missed it: its trainer had gone on, and will be met elsewhere next time."""
        plan = self._state.plans.get(number)
        return (
            plan is not None
            and [rank for rank, part in parts.items() if part is Part.MISSED] == [plan.rank]
            and bool(plan.layout)
        )

    def reopen(self, plan: SetPlan, reason: str) -> None:
        """Takes an answer back: what it was about turned out to be incomplete."""
        attempt, rank = self._place.attempt, self._place.rank
        missed = Missed(rank=rank, reason=reason)
        self._store.put(self._keys.part(attempt, plan.number, rank, Part.MISSED.value), encode(missed))
        self._store.delete([self._keys.closed(attempt, plan.number)])
        self._note(f"checkpoints: set {plan.number} is taken back: {reason}")

    def _close(self, known: History, number: int, parts: Mapping[int, Part]) -> tuple[History, str]:
        """Closes a set that every rank has answered, if its parts are a checkpoint; otherwise the reason, empty where a rank said it."""
        plan = self._state.plans[number]
        writers = [rank for rank, part in sorted(parts.items()) if part is Part.FILES]
        result, read = self._judge(plan, parts, writers)
        if result.state is not Result.CLOSED:
            if result.reason:
                self._note(f"checkpoints: set {number} is not complete: {result.reason}")
            return known, result.reason
        attempt, step = self._place.attempt, max((one.step for one in read), default=plan.step)
        keys = tuple(
            self._keys.part(attempt, number, rank) if rank in writers else "" for rank in range(self._place.ranks)
        )
        made = CheckpointSet(
            job=self._place.job.id, attempt=attempt, number=number, step=step, closed_at=self._now(), parts=keys
        )
        self._store.put(self._keys.closed(attempt, number), encode(made))
        self._state.plans[number] = replace(plan, step=step)
        self._note(f"checkpoint {step} is closed: {len(writers)} of {self._place.ranks} ranks have files")
        return known.with_closed(attempt, number, self._keys.closed(attempt, number)), ""

    def _judge(self, plan: SetPlan, parts: Mapping[int, Part], writers: list[int]) -> tuple[Outcome, list[Commit]]:
        scope = self._place.job.checkpoint_scope
        named = plan.names > 0 or plan.number == LAST_SET
        result = judge_parts(parts, ranks=self._place.ranks, named=named, scope=scope)
        if result.state is not Result.CLOSED:
            return result, []
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            read = list(pool.map(lambda rank: self._part_of(rank, plan.number), writers))
        return judge_commits(plan, read, scope, self._place.ranks), read

    def _part_of(self, rank: int, number: int) -> Commit:
        if self._own is not None and (rank, number) == (self._place.rank, self._own.number):
            return self._own
        return decode(Commit, self._store.get(self._keys.part(self._place.attempt, number, rank)))

    def _why(self, known: History) -> str:
        """What a rank said of the last set that was missed."""
        for number in sorted(known.answered(self._place.attempt, self._place.ranks), reverse=True):
            for rank, part in sorted(known.parts(self._place.attempt, number).items()):
                if part is Part.MISSED:
                    key = self._keys.part(self._place.attempt, number, rank, part.value)
                    return f"Rank {rank} said: {decode(Missed, self._store.get(key)).reason}."
        return ""
