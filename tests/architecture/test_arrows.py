"""Dependencies go one way: contract <- lambda, node, grid_child, image_builder <- stacks <- rehearsal; localaws <- rehearsal; and
nothing but tests imports tools."""

from __future__ import annotations

import re
import sys
from collections.abc import Set
from pathlib import Path

import pytest

from stacks.parts.shipped import ROOMS
from tests.architecture import sources
from tests.architecture.sources import (
    EVERYTHING,
    PRODUCT,
    ROOT,
    below,
    code,
    find_circle,
    import_graph,
    imports,
    name,
    python_files,
)

STANDARD = set(sys.stdlib_module_names)
FUNCTIONS = {path.name for path in (ROOT / "lambda").iterdir() if (path / "handler.py").exists()}
OF_FUNCTIONS = FUNCTIONS | ROOMS
POLICIES = [
    *sorted((ROOT / "lambda").glob("*/policy.py")),
    *(ROOT / "grid_child" / f"{it}.py" for it in ("policy", "pace")),
]
UNKNOWN: dict[str, tuple[list[Path], Set[str]]] = {
    "policies never touch AWS": (POLICIES, {"boto3", "botocore", "aws_cdk", "os", "time"}),
    "one folder alone calls AWS for the functions": (
        [file for file in python_files("lambda") if not file.is_relative_to(ROOT / "lambda" / "aws")],
        {"boto3"},
    ),
    "no shared room imports a function": (python_files(*(f"lambda/{room}" for room in ROOMS)), FUNCTIONS),
    "the room of AWS knows no other room": (python_files("lambda/aws"), ROOMS - {"aws"}),
    "what words a refusal asks AWS nothing": (
        python_files("lambda/refusals"),
        {"aws", "boto3", "botocore", "os", "time"},
    ),
    "what runs in AWS knows nothing of how it is deployed": (
        python_files("contract", "grid_child", "lambda", "node"),
        {"aws_cdk", "constructs", "stacks", "app"},
    ),
    "the node knows nothing of the functions": (
        python_files("node"),
        OF_FUNCTIONS | {"pydantic", "aws_lambda_powertools"},
    ),
    "the functions know nothing of the node": (python_files("lambda"), {"agent"}),
    "the child knows nothing of the functions nor of the node": (
        python_files("grid_child"),
        OF_FUNCTIONS | {"agent", "pydantic", "aws_lambda_powertools", "aws_cdk", "stacks"},
    ),
    "neither functions nor nodes know the child": (python_files("lambda", "node"), {"grid_child"}),
    "no stack imports function code": (
        [file for file in python_files("stacks", "app.py") if file.stem != "request_reading"],
        OF_FUNCTIONS | {"agent", "boto3", "botocore"},
    ),
    "what reads at synth imports the rooms that read requests alone": (
        [ROOT / "stacks" / "request_reading.py"],
        (OF_FUNCTIONS | {"agent", "boto3", "botocore"})
        - {"grid_plan", "image_build", "job_requests", "refusals", "searches"},
    ),
    "no stack reads the environment or a clock": (
        python_files("stacks", "app.py"),
        {"os", "time", "datetime", "random", "uuid", "socket"},
    ),
    "nothing that is deployed knows the command line or its libraries": (
        python_files("app.py", "contract", "grid_child", "image_builder", "lambda", "node", "stacks"),
        {"trainyard", "typer", "rich"},
    ),
    "the command line knows nothing of the node, nor of how the stacks are made into an app": (
        python_files("trainyard"),
        {"agent", "app", "grid_child", "image_builder"},
    ),
    "no stack knows the app": (python_files("stacks"), {"app"}),
    "nothing but tests imports the tools": (
        python_files(*PRODUCT, "localaws", "rehearsal", "benchmarks", "examples"),
        {"tools"},
    ),
    "no tool imports a test": (python_files("tools"), {"tests", "benchmarks", "localaws", "moto"}),
    "only the plugin of pytest needs pytest: the summary runs on any Python": (
        [file for file in python_files("tools") if file.name != "lane.py"],
        {"pytest"},
    ),
    "only the tool that bakes images calls AWS": (
        [file for file in python_files("tools") if file.parent.name != "bake_image"],
        {"boto3", "botocore"},
    ),
    "what trainers copy knows nothing of Trainyard": (
        python_files("trainer"),
        {*EVERYTHING, *FUNCTIONS, "agent", "aws", "torch"},
    ),
    "nothing but tests imports what trainers copy": (
        python_files(*PRODUCT, "localaws", "rehearsal", "tools", "benchmarks", "examples"),
        {"trainer", "trainyard_trainer"},
    ),
    "examples know nothing of Trainyard": (python_files("examples"), {*EVERYTHING, *FUNCTIONS, "agent", "aws"}),
    "the product never imports the rehearsal or the tests": (
        python_files(*PRODUCT),
        {"localaws", "rehearsal", "tests", "benchmarks", "moto", "pytest"},
    ),
    "the local AWS knows nothing of what is deployed in it": (
        python_files("localaws"),
        OF_FUNCTIONS | {*PRODUCT} - {"lambda", "node"} | {"app", "agent", "rehearsal", "tools", "tests", "benchmarks"},
    ),
}
"""Files that must not import these."""


def importing(files: list[Path], forbidden: Set[str]) -> dict[str, set[str]]:
    """The files that import something forbidden, with what it is."""
    return {name(file): found for file in files if (found := imports(file) & forbidden)}


@pytest.mark.parametrize("arrow", UNKNOWN)
def test_dependencies_go_one_way(arrow: str) -> None:
    files, unknown = UNKNOWN[arrow]
    assert files
    assert importing(files, unknown) == {}


@pytest.mark.parametrize("folder", ["contract", "image_builder"])
def test_what_runs_everywhere_needs_nothing_but_the_standard_library_and_the_contract(folder: str) -> None:
    others = {name(file): imports(file) - STANDARD - {"contract"} for file in python_files(folder)}
    assert {file: found for file, found in others.items() if found} == {}


def test_the_contract_reads_no_clock_and_no_file_but_an_archive_that_it_unpacks() -> None:
    unpacks = [ROOT / "contract" / f"{file}.py" for file in ("unpacking", "archives", "entries")]
    assert [file for file in unpacks[1:] if "import Path" in file.read_text()] == []  # pure paths, of names alone
    assert importing(python_files("contract"), {"time", "datetime", "socket", "subprocess"}) == {}
    assert importing([file for file in python_files("contract") if file not in unpacks], {"pathlib"}) == {}


def test_a_folder_of_lambda_is_a_function_or_a_shared_room() -> None:
    folders = {path.parent.name for path in (ROOT / "lambda").glob("*/*.py")}
    assert (set(), folders) == (FUNCTIONS & ROOMS, FUNCTIONS | ROOMS)


def test_no_function_imports_another() -> None:
    for function in FUNCTIONS:
        assert importing(python_files(f"lambda/{function}"), FUNCTIONS - {function}) == {}


def test_a_line_of_a_manifest_goes_through_plan_in_one_direction() -> None:
    """Each step knows what came before it, and only the planner takes a line from one to the next."""
    graph = import_graph(python_files("lambda/grid_plan"))
    steps = [
        f"grid_plan.{step}"
        for step in ("manifest", "drafts", "wanted", "policy", "lookups", "choice", "training_arguments")
    ]
    back = {step: graph[step] & set(steps[place + 1 :]) for place, step in enumerate(steps)}
    assert {step: found for step, found in back.items() if found} == {}
    assert {module for module, known in graph.items() if "grid_plan.policy" in known} == {"grid_plan.planning"}


def test_no_part_knows_the_settings_or_a_stack() -> None:
    for file in python_files("stacks/parts"):
        for module in ("stacks.settings", "stacks.foundation", "stacks.region", "stacks.workflow", "stacks.reaper"):
            assert module not in code(file), name(file)
    assert importing(python_files("stacks/parts"), {"pydantic", "app"}) == {}


def test_a_stack_knows_one_block_of_the_settings_at_most_and_never_all_of_them() -> None:
    for file in sorted((ROOT / "stacks").glob("*.py")):
        known = re.findall(r"stacks(?:\.settings| import settings)(.*)", code(file))
        assert len(known) <= 1, name(file)
        assert all(re.fullmatch(r" import [A-Z][a-z]+Settings", one) for one in known), name(file)


def test_no_archive_of_a_function_has_a_program_that_only_developers_run() -> None:
    assert [name(file) for file in python_files("lambda") if file.stem == "__main__"] == []
    assert [name(file) for file in python_files("lambda", "contract", "stacks") if "__main__" in code(file)] == []


def test_no_file_of_tests_imports_what_another_defines() -> None:
    """What two share stands in a support module beside them."""
    shared = re.compile(r"^from (?:localaws\.)?tests\S*\.test_", re.MULTILINE)
    assert [name(file) for file in python_files("tests", "localaws") if shared.search(file.read_text())] == []


def test_a_model_of_a_service_needs_nothing_but_what_it_is_given() -> None:
    models = sorted((ROOT / "localaws" / "services").glob("*_model.py"))
    assert {path.stem for path in models} == {
        f"{one}_model"
        for one in ("batch", "codebuild", "dynamodb", "ec2", "ecr", "kubernetes", "rds_data", "sagemaker")
    }
    graph = import_graph(python_files("localaws"))
    behind = set[str]().union(*(below(graph, f"localaws.services.{path.stem}") for path in models))
    files = [*models, *(ROOT / f"{module.replace('.', '/')}.py" for module in behind)]
    assert ROOT / "localaws" / "services" / "ec2_launch.py" in files
    outside = {"boto3", "botocore", "moto", "random", "subprocess", "time"}
    assert importing([file for file in files if file.exists()], outside) == {}


def test_the_local_aws_has_no_word_of_what_is_deployed_in_it() -> None:
    files = [path for path in (ROOT / "localaws").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert [name(file) for file in files if b"trainyard" in file.read_bytes().lower()] == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports within functions count, and those for type checkers alone: a file is understood without one that needs it."""
    assert find_circle(import_graph(python_files(*EVERYTHING), types=True)) == []


def test_a_circle_of_modules_would_be_seen() -> None:
    assert find_circle({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set[str]()}) == []
    assert sorted(set(find_circle({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set[str]()}))) == ["a", "b", "c"]


def test_an_import_for_types_alone_is_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    (tmp_path / "a.py").write_text("if TYPE_CHECKING:\n    from b import B\n")
    (tmp_path / "b.py").write_text("def f():\n    import a\n")
    files = [tmp_path / "a.py", tmp_path / "b.py"]
    assert find_circle(import_graph(files)) == []
    assert sorted(set(find_circle(import_graph(files, types=True)))) == ["a", "b"]


def test_every_folder_with_python_has_its_arrows() -> None:
    tracked = {path.parent.name for path in ROOT.glob("*/*.py")} | {path.parts[-3] for path in ROOT.glob("*/*/*.py")}
    here = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
    made = {"build", "cdk.out", "node_modules"}
    assert (tracked & here) - made == {place for place in EVERYTHING if not place.endswith(".py")}


def test_the_page_for_contributors_names_every_folder() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert [place for place in (*EVERYTHING, "docs") if f"`{place.removesuffix('.py')}" not in page] == []


OWN_LOOPBACK = (("127.0.0.1", "contract/workbench.py"), ("localhost", "lambda/refusals/launching.py"))
"""A bench serves its own machine alone, wherever that is. A command that names a node's own address as rank 0's joins no others."""


@pytest.mark.parametrize("word", ["rehears", "moto", "localhost", "127.0.0.1", "localstack", "is_local", "if local"])
def test_the_product_never_knows_that_it_is_rehearsed(word: str) -> None:
    sources = {name(file): code(file) for file in python_files(*PRODUCT)}
    scripts = {name(file): file.read_text() for file in sorted((ROOT / "node").glob("*.sh"))}
    found = [(word, file) for file, source in (sources | scripts).items() if word in source.lower()]
    assert [one for one in found if one not in OWN_LOOPBACK] == []
