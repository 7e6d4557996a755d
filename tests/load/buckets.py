"""EC2's throttling of RunInstances in a region: two buckets of tokens, one a call and one an instance.

Their sizes and refills are those of docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html. The page does not say whether a launch
takes tokens of instances that finds no capacity; here it does, which is the worse case. A call that is throttled takes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Bucket:
    """Tokens that come back by and by. `now` is the time of the last look at it."""

    most: float
    a_second: float
    now: float
    left: float = field(init=False)
    least: float = field(init=False)
    """The fewest that were ever left."""

    def __post_init__(self) -> None:
        self.left = self.least = self.most

    def has(self, tokens: float, now: float) -> bool:
        self.left = min(self.most, self.left + (now - self.now) * self.a_second)
        self.now = now
        return self.left >= tokens - 1e-9

    def take(self, tokens: float) -> None:
        self.left -= tokens
        self.least = min(self.least, self.left)


@dataclass
class Throttle:
    """Of one region."""

    began: float
    calls: Bucket = field(init=False)
    instances: Bucket = field(init=False)
    throttled: int = 0

    def __post_init__(self) -> None:
        self.calls = Bucket(most=5, a_second=2.0, now=self.began)
        self.instances = Bucket(most=1000, a_second=2.0, now=self.began)

    def allows(self, instances: int, now: float) -> bool:
        """Whether a launch of so many gets through; it takes its tokens then."""
        fits = [self.calls.has(1, now), self.instances.has(instances, now)]
        if not all(fits):
            self.throttled += 1
            return False
        self.calls.take(1)
        self.instances.take(instances)
        return True
