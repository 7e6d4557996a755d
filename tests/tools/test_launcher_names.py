"""The table of launchers: each word of it is one of the code, and the code's words are in it."""

from __future__ import annotations

import re

import pytest

from contract import training
from contract.cluster import Cluster
from contract.jobs import Launcher
from grid_plan import columns, merging
from job_requests.request import JobRequest
from localaws.services import sagemaker_mpi
from tests.architecture.sources import ROOT
from tools.containers import page
from tools.launcher_names import LAUNCHERS, LauncherName

REQUEST, LINE = set(JobRequest.model_fields), set(columns.TrainingSpec.model_fields)
FIELD = re.compile(r"`([a-z]+(?:_[a-z]+)*)`")
PROGRAMS = {"torchrun"}
"""Words in small letters that are no field."""
NODES = Cluster(addresses=("10.0.0.1", "10.0.0.2"), rank=1, port=29500, processes=2)


def row(what: str) -> LauncherName:
    (found,) = (one for one in LAUNCHERS if one.what == what)
    return found


def test_every_launcher_of_a_job_and_every_distribution_of_a_line_is_asked_for_in_it() -> None:
    words = " ".join(row("asked for by").cells)
    assert set(re.findall(r'`"(\w+)"`', words)) == {one.value for one in Launcher} - {Launcher.NONE.value}
    assert {columns.TORCHRUN, columns.MPI} == {one.value for one in Launcher} - {Launcher.NONE.value}


@pytest.mark.parametrize("one", LAUNCHERS, ids=lambda one: one.what)
def test_every_field_that_it_names_is_one_of_its_side(one: LauncherName) -> None:
    jobs = set(FIELD.findall(f"{one.job_torchrun} {one.job_mpi}")) - PROGRAMS
    lines = set(FIELD.findall(f"{one.line_torchrun} {one.line_mpi}")) - PROGRAMS
    assert jobs - REQUEST == set()
    assert lines - LINE == set()


def test_no_field_of_one_side_is_asked_for_on_the_other() -> None:
    for one in LAUNCHERS:
        assert "processes_per_host" not in one.job_torchrun + one.job_mpi
        assert "processes_per_node" not in one.line_torchrun + one.line_mpi


def test_every_field_that_says_how_processes_start_is_in_it() -> None:
    words = " ".join(cell for one in LAUNCHERS for cell in one.cells)
    wanted = {"launcher", "processes_per_node", "distribution", *merging.DEPENDENT["distribution"]}
    assert wanted - set(FIELD.findall(words)) == set()


def test_every_variable_of_the_cluster_is_in_it_for_jobs_and_for_no_line() -> None:
    for name in (*NODES.build_variables(), training.NODE_RANK, training.NUM_NODES):
        assert any(f"`{name}`" in one.job_torchrun and f"`{name}`" in one.job_mpi for one in LAUNCHERS)
        assert not any(name in one.line_torchrun + one.line_mpi for one in LAUNCHERS)


def test_every_variable_that_the_node_exports_to_a_process_of_mpirun_is_in_it() -> None:
    script = (ROOT / "node" / "agent" / "launching" / "process.sh").read_text()
    (names,) = re.findall(r"^export ((?:[A-Z_]+ ?)+)$", script, re.MULTILINE)
    words = row("this process among all").job_mpi
    assert [name for name in names.split() if f"`{name}`" not in words] == []


def test_a_line_of_mpiruns_output_begins_as_the_local_sagemaker_writes_it() -> None:
    (mark,) = re.findall(r"`(\[1,[^`]+)`", row("output arrives").line_mpi)
    assert sagemaker_mpi.name_host("[1,3]<stdout>:", 2) == mark


def test_every_cell_is_filled_and_the_page_has_each_row() -> None:
    text = page()
    for one in LAUNCHERS:
        assert all(one.cells)
        assert f"| {' | '.join((one.what, *one.cells))} |" in text
