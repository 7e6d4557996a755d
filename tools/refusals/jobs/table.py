"""The parts of a table of refusals, and the words that its lines share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from job_requests.request import JobRequest
from tools.refusals.refusal import Refusal

LEAST: dict[str, Any] = {
    "code": "s3://yard-home/uploads/a.tar.gz",
    "command": ["python", "train.py"],
    "instance_types": ["g5.xlarge"],
}
"""The smallest request that is admitted."""
ARCHIVE = "s3://bucket/key of an archive whose name ends in .tar.gz, .tgz, .tar or .zip"
COMMIT = '{"git": "https://github.com/owner/repository.git", "ref": the 40 characters that `git rev-parse HEAD` prints}'
CODE = f"{ARCHIVE}, or a commit: {COMMIT}"
DATA = "s3://datasets/..., s3://partner/..., s3://retired/... (data_buckets in cdk.json)"
OURS = f"s3://yard-home/uploads/..., {DATA}"
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:trainyard/yard/"
VARIABLE = "up to 128 letters, digits and _, not beginning with a digit"
FIELDS = ", ".join(JobRequest.model_fields)


class Row(Refusal):
    """A refusal of a job; what is given are fields beside those of the smallest request."""

    least = LEAST

    def __init__(self, what: str, given: Any, *says: str, name: str = "job-1", closed: str = "", **more: Any) -> None:
        """`name` is the execution's; `closed` is why admission is closed; `more` as for every Refusal."""
        super().__init__(what, given, *says, **more)
        self.name, self.closed = name, closed


class Section:
    """The refusals of one field."""

    def __init__(
        self,
        field: str,
        allowed: str,
        *,
        rows: Sequence[Row | tuple[Any, ...]],
        entry: str = "",
        taken: Any = None,
        left_out: Any = None,
        beside: Mapping[str, Any] = MappingProxyType({}),
        without: Sequence[str] = (),
        name: str = "given",
    ) -> None:
        """`allowed` says what the field may be; it ends every line that does not say it in another way. `entry` says the same for one
        entry of a list or an object. `taken` is a right value, which job.json repeats as it was given (None where the job has no such
        field), `left_out` job.json's value without the field (None where the field is required, or job.json
        then lacks it too), `beside` what a request with the right value needs beside it, `without` what it cannot have,
        `name` that of its execution.

        A row that is a tuple gives a value to this field alone: what is wrong, the value, and the lines of the answer without the
        field's name at their beginning, which is `.` and a name for an entry.
        """
        self.field, self.allowed, self.entry = field, allowed, entry
        self.taken, self.left_out, self.beside, self.name, self.without = taken, left_out, beside, name, without
        self.rows = tuple(one if isinstance(one, Row) else self._row(*one) for one in rows)

    def _row(self, what: str, value: Any, *says: str) -> Row:
        return Row(what, {self.field: value}, *(f"{self.field}{'' if one[0] == '.' else ': '}{one}" for one in says))

    def lines(self, row: Row) -> list[str]:
        """Returns the complete lines of the refusal."""
        return row.completed(self._allowed)

    def _allowed(self, line: str) -> str:
        if "there is no such field" in line or "there are no such fields" in line:
            return FIELDS
        return self.entry if self.entry and "." in line.partition(":")[0] else self.allowed
