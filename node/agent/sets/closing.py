"""Closes the sets of an attempt to which every rank has answered, and says when no set will ever be whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from agent.position import Position
from agent.retention import History, history
from agent.sets.outcomes import is_hopeless, judge_parts
from agent.sets.state import SetState
from agent.store import Missing, Store
from contract.codec import Garbled, decode, encode
from contract.commits import CheckpointSet, Commit, Missed, Part, SetPlan
from contract.keys import BytesPrefix, CommitKind

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
        self._problem = ""

    def settle(self) -> History:
        """Closes each set of this attempt to which the last rank has answered. Raises NeverWhole."""
        state, attempt = self._state, self._place.attempt
        known = history(self._store.keys(self._keys.commits(CommitKind.CHECKPOINTS)))
        answered = known.answered(attempt, self._place.ranks, self._place.may_leave)
        for number in sorted(state.plans.keys() & answered.keys()):
            if number > state.settled or (number == state.unfit and Part.MISSED in answered[number].values()):
                known = self._settle_set(known, number, answered[number])
                state.settled = max(state.settled, number)
        state.unsettled = False
        blamed = {number: parts for number, parts in answered.items() if not self._is_openers_own(number, parts)}
        since_s = self._now() - min((plan.opened_at for plan in state.plans.values()), default=self._now())
        if is_hopeless(blamed, any_closed=bool(known.closed), since_s=since_s):
            said = (self._explain_miss(number, answered[number]) for number in sorted(answered, reverse=True))
            why = self._problem or next(filter(None, said), "")  # an answer may be taken back once its set was closed
            raise NeverWhole(f"none of {len(answered)} checkpoints was whole: {why}")
        return known

    def _settle_set(self, known: History, number: int, parts: Mapping[int, Part]) -> History:
        """Closes a set unless it is closed, or its parts are no checkpoint."""
        state, plan, at = self._state, self._state.plans[number], (self._place.attempt, number)
        if at not in known.closed:
            if not (problem := self._close(plan, parts)):
                known = known.with_closed(*at, self._keys.closed(*at))
            elif set(parts.values()) != {Part.NOTHING}:
                self._problem = problem
                self._note(f"checkpoints: set {number} is not complete: {problem}")
        if at in known.closed:
            state.closed_step = max(state.closed_step, state.plans[number].step, 0)
        elif plan.layout and Part.MISSED not in parts.values():
            state.unfit = number
        elif plan.layout and number == state.number - 1:
            state.done, state.unfit = "", 0  # what a layout keeps in its place can be in the next set
        return known

    def _close(self, plan: SetPlan, parts: Mapping[int, Part]) -> str:
        """Closes a set; the reason where a rank missed it, or its parts are no checkpoint."""
        place, number = self._place, plan.number
        if problem := self._explain_miss(number, parts):
            return problem
        writers = [rank for rank, part in sorted(parts.items()) if part is Part.FILES]
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            read = list(pool.map(lambda rank: self._read_part(rank, number), writers))
        if problem := judge_parts(plan, read, place.job.checkpoint_scope, place.ranks, place.must_have):
            return problem
        step = max(one.step for one in read)
        keys = tuple(
            self._keys.part(place.attempt, number, rank) if rank in writers else "" for rank in range(place.ranks)
        )
        made = CheckpointSet(
            job=place.job.id, attempt=place.attempt, number=number, step=step, closed_at=self._now(), parts=keys
        )
        self._store.put(self._keys.closed(place.attempt, number), encode(made))
        self._state.plans[number] = replace(plan, step=step)
        self._note(f"checkpoint {step} is closed: {len(writers)} of {place.ranks} ranks have files")
        return ""

    def _explain_miss(self, number: int, parts: Mapping[int, Part]) -> str:
        """Words what the first rank said that missed a set; empty where none did."""
        first = min((rank for rank, part in parts.items() if part is Part.MISSED), default=None)
        if first is None:
            return ""
        with suppress(Garbled, Missing):  # whatever it says, the set is missed
            document = self._store.get(self._keys.part(self._place.attempt, number, first, Part.MISSED.value))
            return f"Rank {first} said: {decode(Missed, document).reason}."
        return f"rank {first} missed it"

    def _read_part(self, rank: int, number: int) -> Commit:
        own = self._state.newest
        if own is not None and (rank, number) == (self._place.rank, own.number):
            return own
        return decode(Commit, self._store.get(self._keys.part(self._place.attempt, number, rank)))

    def _is_openers_own(self, number: int, parts: Mapping[int, Part]) -> bool:
        """Whether only the rank that opened a set missed it: its trainer had gone on, and will be met elsewhere next time."""
        plan = self._state.plans.get(number)
        missed = [rank for rank, part in parts.items() if part is Part.MISSED]
        return plan is not None and bool(plan.layout) and missed == [plan.rank]
