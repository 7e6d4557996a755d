"""All that a rank remembers of the sets of its attempt, in one record that can be printed."""

from __future__ import annotations

from dataclasses import dataclass, field

from contract.commits import SetPlan


@dataclass
class SetState:
    """Times are AWS's, UTC epoch seconds."""

    due: float
    """From when on the next set may be opened."""
    number: int = 1
    """Of the next set."""
    plan: SetPlan | None = None
    """Of the set that waits for this rank's answer."""
    seen_at: float = 0.0
    """When the plan was first seen."""
    answered: str = ""
    """Which checkpoint the last answer was about (`Saved.identity`)."""
    passed: str = ""
    """The checkpoint that this rank wanted to open a set with, and that was no longer whole."""
    heard: str = ""
    """The checkpoint that the trainer had named at the last look."""
    restored: int = -1
    """The step with which the attempt began; -1 where that is unknown."""
    has_older: bool = False
    """Whether there is a closed set to fall back to."""
    closed_step: int = -1
    closed_number: int = 0
    """Of the newest set that is known to be closed."""
    plans: dict[int, SetPlan] = field(default_factory=dict)
    """Of the sets that this rank has answered, by number."""
    unsettled: bool = False
    """Whether an answered set waits to be closed."""
    silent: SetPlan | None = None
    """A set that this rank answered without a checkpoint of its own, although another rank had named one."""
    next_poll: float = 0.0
    next_walk: float = 0.0
    next_settle: float = 0.0
    next_answer: float = 0.0
    next_observe: float = 0.0
    why: str = ""
    """Why there is no answer yet."""

    @property
    def opened_at(self) -> float | None:
        """When the first set of this attempt that this rank answered was opened."""
        return min((plan.opened_at for plan in self.plans.values()), default=None)

    def take_answer(self, plan: SetPlan, identity: str, *, due: float) -> None:
        """Goes on to the next set."""
        self.plans[self.number], self.answered, self.why = plan, identity, ""
        self.number, self.plan, self.due = self.number + 1, None, due
        self.unsettled = True

    def describe(self, now: float) -> str:
        """Says in one line where this rank stands."""
        if self.plan is not None:
            at = f"set {self.number} with checkpoint {self.plan.step} of rank {self.plan.rank}, since {now - self.seen_at:.0f} s"
        else:
            at = f"set {self.number}, due {'for' if now >= self.due else 'in'} {abs(now - self.due):.0f} s"
        last = (
            f"newest closed checkpoint {self.closed_step}" if self.closed_step >= 0 else "none closed in this attempt"
        )
        return "; ".join(part for part in (at, self.why, last) if part)
