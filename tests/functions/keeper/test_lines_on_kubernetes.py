"""The row of a line on Kubernetes: its type and image are those that its line names."""

from __future__ import annotations

from dataclasses import replace

from contract.grid import LineOutcome, Record
from keeper.rows import LINE, describe_line
from tests.fakes.grid_yard import HOME, grid_of, pod_line_of


def test_a_line_on_kubernetes_has_its_type_and_its_image() -> None:
    line = replace(pod_line_of(0), source={"instance_type": "ml.g5.xlarge", "image": "images:v1"})
    record = Record(index=0, line=1, region=HOME, training=line.training, outcome=LineOutcome.COMPLETED, reason="")
    row = describe_line(grid_of(1, (HOME,)), line, record, LINE, ended_at=1.0)
    assert (row.type, row.image, row.region) == ("ml.g5.xlarge", "images:v1", HOME)


def test_a_line_that_names_neither_has_neither() -> None:
    line = pod_line_of(0)
    record = Record(index=0, line=1, region=HOME, training=line.training, outcome=LineOutcome.FAILED, reason="")
    row = describe_line(grid_of(1, (HOME,)), line, record, LINE, ended_at=1.0)
    assert (row.type, row.image) == ("", "")
