"""The parts of a table of refusals, and the words that its lines share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from admission.request import JobRequest

LEAST: dict[str, Any] = {
    "code": "s3://yard-home/uploads/a.tar.gz",
    "command": ["python", "train.py"],
    "instance_types": ["g5.xlarge"],
}
"""The smallest request that is admitted."""
CODE = "s3://bucket/key of an archive whose name ends in .tar.gz, .tgz, .tar or .zip"
OURS = "s3://yard-home/uploads/..., s3://datasets/..., s3://partner/..., s3://retired/... (data_buckets in cdk.json)"
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:trainyard/yard/"
VARIABLE = "up to 128 letters, digits and _, not beginning with a digit"
FIELDS = ", ".join(JobRequest.model_fields)


class Row:
    """One refusal: what is wrong, what is given (fields beside those of the smallest request), and the lines of the answer."""

    def __init__(
        self,
        what: str,
        given: Any,
        *says: str,
        name: str = "job-1",
        without: tuple[str, ...] = (),
        whole: bool = False,
        closed: str = "",
    ) -> None:
        """`name` is the execution's; `without` removes fields; `whole`: the given value is the execution's whole input; `closed`
        is why admission is closed."""
        self.what = what
        self.given = given
        self.says = says
        self.name = name
        self.without = without
        self.whole = whole
        self.closed = closed

    @property
    def input(self) -> Any:
        """Returns the input of the execution."""
        if self.whole:
            return self.given
        return {name: value for name, value in {**LEAST, **self.given}.items() if name not in self.without}


@dataclass(frozen=True, slots=True)
class Section:
    """The refusals of one field."""

    field: str
    allowed: str
    """What the field may be; ends every line that does not say it in another way."""
    rows: tuple[Row, ...]
    entry: str = ""
    """The same for one entry of a list or an object."""
    taken: Any = None
    """A right value, which job.json repeats as it was given; None where the job has no such field."""
    left_out: Any = None
    """job.json's value without the field; None where the field is required."""

    def lines(self, row: Row) -> list[str]:
        """Returns the complete lines of the refusal."""
        return [line if "; allowed: " in line else f"{line}; allowed: {self._allowed(line)}" for line in row.says]

    def _allowed(self, line: str) -> str:
        if "there is no such field" in line:
            return FIELDS
        return self.entry if self.entry and "." in line.partition(":")[0] else self.allowed
