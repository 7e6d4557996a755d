"""The page of the figures of an image: medians of each part, and summaries without the names of their runs."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.containers.page import Row, page
from rehearsal.grid import GridSummary
from rehearsal.summary import Summary

ROW = Row(name="with an image", boot_s=1.0, prepare_s=2.0, start_s=3.0, step_s=4.0, whole_s=10.0)
JOB = Summary(
    status="SUCCEEDED",
    job="with-an-image-3",
    attempts=1,
    world_size=2,
    metric=0.5,
    artifacts=["jobs/with-an-image-3/artifacts/a|b"],
    log_streams=["with-an-image-3/1/0"],
    instances_left=0,
    state_path=["Done"],
    transitions=1,
    history_events=1,
    overhead_s=1.0,
    wall_s=1.0,
    execution_s=1.0,
    boot_s=1.0,
    import_s=None,
)
GRID = GridSummary(
    grid="line-3",
    status="SUCCEEDED",
    lines=1,
    regions={"eu-central-1": 1},
    outcomes={"Completed": 1},
    trainings=1,
    jobs=0,
    interruptions=0,
    children=1,
    attempts=1,
    trainings_left=[],
    children_left=[],
    processes_left=0,
    instances_left=0,
    astray=[],
    state_path=["Done"],
    execution_s=1.0,
    wall_s=1.0,
    results=[
        {
            "outcome": "Completed",
            "reason": "",
            "metrics": {"metric": 0.5},
            "billable_seconds": 1.0,
            "training": "secret",
        }
    ],
)


def written(*rows: Row, lacking: str = "") -> str:
    plain = replace(JOB, job="without-3", artifacts=[], log_streams=[])
    summaries = {"with an image": JOB, "without": plain, "as a line": GRID}
    others = [replace(row, name="without") for row in rows]
    return page([*rows, *others], summaries, rounds=len(rows), lacking=lacking, machine="M")


def test_a_part_is_the_median_with_its_extremes() -> None:
    text = written(ROW, replace(ROW, prepare_s=9.0), replace(ROW, prepare_s=3.0))
    assert "| code, restore and pull | 3.0 (2.0 to 9.0) | 3.0 (2.0 to 9.0) |" in text


def test_both_summaries_stand_side_by_side_without_the_names_of_their_runs() -> None:
    text = written(ROW)
    assert "| `metric` | 0.5 | 0.5 |" in text
    assert '["JOB/1/0"]' in text
    assert "with-an-image-3" not in text
    assert "artifacts/a\\|b" in text


def test_a_line_shows_how_it_ended_and_no_more() -> None:
    text = written(ROW)
    assert '"metrics": {"metric": 0.5}' in text
    assert "secret" not in text


def test_the_page_says_where_images_were_not_built_for_real() -> None:
    assert "its files only, because buildah is missing" in written(ROW, lacking="buildah is missing")
