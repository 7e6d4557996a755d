"""What can go wrong on a node, in the two ways that the control plane tells apart."""

from __future__ import annotations


class CannotStart(Exception):
    """The job's own doing: a new attempt would meet it again. Reported as TrainingFailed."""


class MachineTrouble(Exception):
    """The machine's or the network's doing: a new attempt may mend it. Reported as NodeLost."""


class Ordered(Exception):
    """An order came before the training process was started."""
