"""What a person sees at the end of a rehearsal, on a terminal of 80 columns: the cause, what to do, and nothing that leads nowhere."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from localaws.conditions import Conditions
from rehearsal.diagnosis import diagnose, localise
from rehearsal.readiness import describe_unready
from rehearsal.replaced import FILE, REPLACED
from rehearsal.screen import PAGE, Screen, describe_next, list_facts, list_interruptions
from rehearsal.summary import Summary, read_cost

CONDITIONS: dict[str, Any] = {
    name: getattr(Conditions(), name) for name in Conditions.__dataclass_fields__ if name != "faults"
} | {"faults": {}}
FAILED = Summary(
    status="FAILED", job="mine", attempts=1, world_size=0, metric=None, artifacts=[], log_streams=[], instances_left=0,
    state_path=["Admit", "Launch", "Train", "Terminate", "Decide", "Failed"], transitions=7, history_events=9, overhead_s=None,
    wall_s=20.0, execution_s=10.0, boot_s=None, import_s=None, error="TrainingFailed", layer="the deployed layer: boto3 from /x",
    conditions=CONDITIONS,
)  # fmt: skip
CAUSE = """rank 0: the command exited with code 1.
Its nodes said:
  rank 0: last lines of its output:
      Traceback (most recent call last):
        File "/a/b/functions/machine/var/lib/trainyard/code/train.py", line 1, in <module>
      ModuleNotFoundError: No module named 'transformers'
The whole log: log group /trainyard/trainyard/nodes, stream mine/1/0.

Execution: https://eu-central-1.console.aws.amazon.com/states/home
Report: https://eu-central-1.console.aws.amazon.com/s3/object/x"""


def shown(summary: Summary, out: Path, *wrong: str, verbose: bool = False) -> str:
    console = Console(record=True, width=80, file=io.StringIO(), soft_wrap=True, emoji=False)
    Screen(console, verbose=verbose).summary(summary, [*wrong], [], out)
    return console.export_text()


class EndedJob:
    """A job that has ended, as the account shows it."""

    def __init__(self, error: str, cause: str, functions: dict[str, list[str]], *, status: str = "FAILED") -> None:
        self.name, self._error, self._cause, self._status = "mine", error, cause, status
        self.yard = SimpleNamespace(
            aws=SimpleNamespace(workers=SimpleNamespace(logs=lambda: functions)),
            nodes=SimpleNamespace(all=list[Any]),
        )

    def describe(self) -> dict[str, str]:
        return {"status": self._status, "error": self._error, "cause": self._cause}

    def history(self) -> list[dict[str, Any]]:
        return []

    def states(self) -> list[str]:
        return ["Failed"]

    def log_streams(self) -> list[str]:
        return ["mine/1/0"]

    def log(self, _stream: str) -> list[str]:
        return ["a line of the node"]


def diagnosed(out: Path, error: str, cause: str, *said: str) -> str:
    console = Console(record=True, width=80, file=io.StringIO(), soft_wrap=True, emoji=False)
    job: Any = EndedJob(error, cause, {"Admission": [*said]})
    diagnose(job, console, out)
    return console.export_text()


def test_a_table_has_nothing_that_is_unknown_and_no_path_of_a_layer(tmp_path: Path) -> None:
    told = shown(FAILED, tmp_path, "the execution ended as FAILED (TrainingFailed)")
    assert "None" not in told
    assert "boto3" not in told
    assert "metric" not in told
    assert "instances left" in told


def test_of_a_job_with_roles_the_first_nodes_are_named_with_their_ends() -> None:
    ends = [f"rank {rank}, actor {rank}: was stopped" for rank in range(20)]
    facts = dict(list_facts(replace(FAILED, roles=ends)))
    assert facts["nodes"].splitlines() == [*ends[:8], "12 more: summary.json"]
    assert "nodes" not in dict(list_facts(FAILED))


def test_functions_that_ran_without_the_deployed_layer_are_named(tmp_path: Path) -> None:
    assert "NOT the deployed layer" in shown(replace(FAILED, layer="NOT the deployed layer: /x"), tmp_path)


def test_with_verbose_everything_is_on_the_screen(tmp_path: Path) -> None:
    told = shown(replace(FAILED, boot_s=3.0), tmp_path, verbose=True)
    assert REPLACED in told
    assert "boot 3.0 s" in told
    assert "boto3 from /x" in told
    assert "None" not in told


def test_what_is_replaced_is_named_in_a_line_and_kept_in_a_file(tmp_path: Path) -> None:
    told = shown(FAILED, tmp_path)
    assert REPLACED in (tmp_path / FILE).read_text()
    assert "Conditions, in real seconds" in (tmp_path / FILE).read_text()
    assert REPLACED not in told
    (line,) = [one for one in told.splitlines() if "A rehearsal replaces" in one]
    assert str(tmp_path / FILE) in line


def test_of_a_request_that_launched_nothing_there_is_no_table(tmp_path: Path) -> None:
    told = shown(replace(FAILED, state_path=["Admit", "Failed"], error="InvalidRequest"), tmp_path, "refused [x]")
    assert "instances left" not in told
    assert "refused [x]" in told


@pytest.mark.parametrize(
    ("report", "usd"),
    [
        ({}, None),
        ({"cost": None}, None),
        ({"cost": {"usd_at_most": "unknown"}}, None),
        ({"cost": {"usd_at_most": 1}}, 1.0),
        ({"cost": {"usd_at_most": 0.0}}, 0.0),
    ],
)
def test_the_cost_is_that_of_the_job_s_report(report: dict[str, Any], usd: float | None) -> None:
    assert read_cost(report) == usd
    facts = dict(list_facts(replace(FAILED, cost_usd=usd)))
    assert ("cost" in facts) == (usd is not None)


def test_each_interruption_is_a_line_with_the_first_sentence_of_its_cause() -> None:
    each = [
        {
            "attempt": 1,
            "error": "NodeLost",
            "steps_lost": 0,
            "recovery_s": 38.1,
            "cause": "rank 1 is gone.\nIts nodes",
            "began_anew": "",
        },
        {
            "attempt": 2,
            "error": "Interrupted",
            "steps_lost": None,
            "recovery_s": None,
            "cause": "",
            "began_anew": "no checkpoint",
        },
    ]
    assert list_interruptions(each) == [
        "attempt 1: NodeLost, 0 steps lost, training again after 38 s. rank 1 is gone.",
        "attempt 2: Interrupted. ",
        "attempt 3 started from the beginning: no checkpoint",
    ]


def test_what_comes_next_is_the_page_where_there_is_one(tmp_path: Path) -> None:
    assert "fault" in describe_next(tmp_path, is_well=True, attempts=1)
    assert "first-account-run" in describe_next(tmp_path, is_well=True, attempts=2)
    assert describe_next(tmp_path, is_well=False, attempts=1) == ""
    (tmp_path / PAGE).touch()
    for is_well in (True, False):
        assert describe_next(tmp_path, is_well=is_well, attempts=1).endswith(str(tmp_path / PAGE))


# a failure


def test_a_cause_has_no_address_of_an_account_that_does_not_exist_but_files_of_this_computer(tmp_path: Path) -> None:
    lines = localise(CAUSE, tmp_path)
    assert not any("https://" in line for line in lines)
    assert lines[-1] == f"The whole log: {tmp_path}/logs/1-0.log"
    assert '        File "code/train.py", line 1, in <module>' in lines


def test_a_failed_training_shows_its_own_error_once_and_no_log_of_ours(tmp_path: Path) -> None:
    said = '{"level": "ERROR", "message": "judged", "reason": "ModuleNotFoundError"}'
    told = diagnosed(tmp_path, "TrainingFailed", CAUSE, said)
    assert told.count("ModuleNotFoundError") == 1
    assert "a line of the node" not in told
    assert "Next: correct the code or the command, and rehearse it again." in told
    assert said in (tmp_path / "logs" / "function-Admission.log").read_text()


def test_an_execution_that_succeeded_shows_no_log_where_something_else_is_missing(tmp_path: Path) -> None:
    console = Console(record=True, width=80, file=io.StringIO())
    job: Any = EndedJob("", "", {"Admission": ["[ERROR] away"]}, status="SUCCEEDED")
    diagnose(job, console, tmp_path)
    assert console.export_text() == ""
    assert (tmp_path / "logs" / "function-Admission.log").exists()


def test_a_refusal_is_its_reasons_and_what_to_do_without_a_traceback(tmp_path: Path) -> None:
    traceback = "[ERROR] InvalidRequest: refused\nTraceback (most recent call last):\n  File x"
    told = diagnosed(
        tmp_path, "InvalidRequest", "The request was refused; nothing was started.\n- nodes: wrong", traceback
    )
    assert "Traceback" not in told
    assert told.splitlines()[1:4] == [
        "InvalidRequest: The request was refused; nothing was started.",
        "- nodes: wrong",
        "Next: correct the request, and rehearse it again.",
    ]


def test_a_lost_node_shows_the_logs_of_nodes_and_none_of_functions(tmp_path: Path) -> None:
    told = diagnosed(tmp_path, "NodeLost", "rank 0 is gone.", "[ERROR] away")
    assert "a line of the node" in told
    assert "away" not in told


def test_an_error_that_is_none_of_ours_shows_the_errors_of_functions(tmp_path: Path) -> None:
    told = diagnosed(tmp_path, "Lambda.Unknown", "", "[ERROR] KeyError: 'x'", '{"level": "INFO", "message": "error"}')
    assert "KeyError: 'x'" in told
    assert "INFO" not in told


# what is not set up


def test_a_missing_module_is_a_line_with_what_to_do(tmp_path: Path) -> None:
    line = describe_unready(tmp_path, ("json", "no_such_module_at_all"))
    assert "no_such_module_at_all" in line
    assert "setup-rehearsal" in line
    assert "\n" not in line


def test_a_folder_that_is_not_set_up_is_a_line_with_what_is_missing(tmp_path: Path) -> None:
    assert "node_modules/.bin/cdk" in describe_unready(tmp_path, ())
