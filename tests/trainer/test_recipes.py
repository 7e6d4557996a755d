"""The recipes of docs/guides/checkpoints.md do what the page says, with stand-ins for what is not installed here."""

from __future__ import annotations

import json
import pickle
import re
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

from localaws.testing.waiting import HANG_S
from tests.architecture.sources import ROOT
from tests.trainer.saving import files, processes
from trainer import trainyard_trainer
from trainer.trainyard_trainer import Run

PAGE = (ROOT / "docs" / "guides" / "checkpoints.md").read_text()


def recipe(title: str, **names: Any) -> dict[str, Any]:
    """The functions of the recipe under this heading."""
    section = PAGE.partition(f"### {title}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    exec(compile(block, title, "exec"), names)
    return names


def torch() -> types.SimpleNamespace:
    def save(state: object, file: Path) -> None:
        file.write_bytes(pickle.dumps(state))

    def load(file: Path, *, weights_only: bool) -> Any:
        assert weights_only
        return pickle.loads(file.read_bytes())

    return types.SimpleNamespace(save=save, load=load)


class DeepSpeed:
    """An engine that writes the files that ZeRO 1 and 2 do, one process a GPU."""

    def __init__(self, rank: int) -> None:
        self.rank, self.state = rank, f"state of {rank}"

    def save_checkpoint(self, folder: str, *, tag: str) -> None:
        under = Path(folder) / tag
        under.mkdir(exist_ok=True)
        (under / f"zero_pp_rank_{self.rank}_mp_rank_00_optim_states.pt").write_text(self.state)
        if self.rank == 0:
            (under / "mp_rank_00_model_states.pt").write_text("model")
            (Path(folder) / "latest").write_text(tag)

    def load_checkpoint(self, folder: str, *, tag: str) -> None:
        self.state = (Path(folder) / tag / f"zero_pp_rank_{self.rank}_mp_rank_00_optim_states.pt").read_text()


@pytest.mark.parametrize("rank", [0, 1])
def test_one_file_of_rank_0_is_saved_by_it_alone_and_loaded_by_all(tmp_path: Path, rank: int) -> None:
    run, does = Run(tmp_path / "checkpoints", tmp_path / "progress.json"), recipe("One file of rank 0", torch=torch())
    assert does["load"](run) is None
    does["save"](run, rank, 120, {"step": 120})
    assert files(tmp_path) == ({"checkpoints/step-120/model.pt", "progress.json"} if rank == 0 else set())
    assert does["load"](run) == ({"step": 120} if rank == 0 else None)


def test_each_process_of_deepspeed_writes_its_part_and_loads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, barrier = processes(tmp_path, monkeypatch, 2), threading.Barrier(2, timeout=HANG_S)
    does = recipe("DeepSpeed", dist=types.SimpleNamespace(barrier=barrier.wait))
    threads = [threading.Thread(target=does["save"], args=(runs[rank], 120, DeepSpeed(rank))) for rank in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(HANG_S)
    under = "step-120/state"
    assert files(tmp_path / "checkpoints") == {
        "step-120/latest",
        f"{under}/mp_rank_00_model_states.pt",
        *(f"{under}/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in range(2)),
    }
    assert json.loads((tmp_path / "progress.json").read_text())["checkpoint"] == 120
    again = DeepSpeed(1)
    again.state = ""
    assert does["load"](runs[1], again) == 120
    assert again.state == "state of 1"


def test_the_recipe_for_fsdp_is_what_is_run_with_pytorch() -> None:
    """tests/rehearsal/test_trainer_recipes.py runs it."""
    script = (ROOT / "tests" / "trainer" / "sharded.py").read_text()
    section = PAGE.partition("### Shards of FSDP")[2].partition("\n### ")[0]
    (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    functions = block.partition("\n\n\n")[2]
    assert "dcp.save" in functions
    for function in functions.strip().split("\n\n\n"):
        bare = re.sub(r"\(run, .*\):", "(", function.splitlines()[0])
        assert bare.removesuffix("(") in script
        for line in function.splitlines()[1:]:
            assert line in script, line


def test_the_first_example_is_one_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "trainyard_trainer", trainyard_trainer)
    section = PAGE.partition("## A module that keeps these rules")[2].partition("\n### ")[0]
    (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "page", "exec"), names)
    assert names["found"] is None
