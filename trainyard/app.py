"""The commands with their arguments and their help; each imports what it needs when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from trainyard.options import JSON_OPTION, Command, Follow, Pause, add_command, word_output
from trainyard.printer import Printer
from trainyard.stops import CannotProceed, CommandExit

app = typer.Typer(
    name="trainyard",
    help="Checks, starts, follows, stops and reads jobs, grids and searches of a Trainyard deployment.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
grids = typer.Typer(name="grid", help="Grids: start, follow, results.", no_args_is_help=True, rich_markup_mode=None)
searches = typer.Typer(name="search", help="Searches: start, follow.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(grids)
app.add_typer(searches)
KIND = "job, grid or search, where several have the name."
KINDS = ("job", "grid", "search")
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the job, grid or search.")]


def choose_kind(given: str | None) -> str | None:
    """Accepts a kind of execution. Raises CannotProceed."""
    if given is not None and given not in KINDS:
        raise CannotProceed(f"--kind: {given}; allowed: {', '.join(KINDS)}")
    return given


@add_command(app, "check")
def check(
    command: Command,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A request, the input of a grid or a search, or a manifest.")
    ],
    code: Annotated[
        Path | None, typer.Option("--code", metavar="DIR", help="The folder of a job's code, which is looked at too.")
    ] = None,
    given: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="The grid's input, beside a manifest.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The name that the job is to have.")
    ] = None,
) -> int:
    """Check a file without AWS, in the words of the deployment.

    Example: trainyard check job.json --code .
    """
    from trainyard.checking import check

    return check(command, file, code=code, given=given, name=name)


@add_command(app, "manifest")
def manifest(
    command: Command,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A line as JSON; without it: what the owner of a cluster applies."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="What the job's name begins with; 11 characters are kept."),
    ] = None,
    gpus: Annotated[int, typer.Option("--gpus", metavar="N", min=0, help="GPUs of each machine.")] = 0,
) -> int:
    """Print a line's MPIJob for kubectl, without AWS.

    Example: trainyard manifest line.json --gpus 1 | kubectl apply -f -
    """
    from trainyard.manifests import print_manifest

    return print_manifest(command, file, name=name, gpus=gpus)


@add_command(app, "run")
def run(
    command: Command,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The request, as JSON.")],
    code: Annotated[
        Path | None,
        typer.Option(
            "--code", metavar="DIR", help="The folder of the code: packed without what .gitignore names, and uploaded."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the job (default: the folder's, and the time)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show price and ladder, and start nothing.")] = False,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Show what happens until the job ends.")] = True,
    every: Pause = 5.0,
) -> int:
    """Start a job and follow it: code, price and ladder first.

    Ctrl-C stops following, not the job. Exit code 0: it succeeded; 1: it failed; 2: it was not started.

    Example: trainyard run job.json --code .
    """
    from trainyard.starting import run

    return run(command, file, code=code, name=name, dry_run=dry_run, follow=follow, every_s=every)


@add_command(app, "status")
def status(
    command: Command,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A job, grid or search; without it: what runs and ended lately."),
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", metavar="KIND", help=KIND)] = None,
    follow: Follow = False,
    every: Pause = 5.0,
) -> int:
    """List executions, or show how one stands: state, attempt, nodes, step, cost.

    Example: trainyard status digits -f
    """
    from trainyard.statuses import status

    return status(command, name, kind=choose_kind(kind), follow=follow, every_s=every)


@add_command(app, "logs")
def logs(
    command: Command,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the job.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    rank: Annotated[int | None, typer.Option("--rank", metavar="N", min=0, help="Of this node alone.")] = None,
    attempt: Annotated[int | None, typer.Option("--attempt", metavar="N", min=1, help="Of this attempt alone.")] = None,
    kernel: Annotated[bool, typer.Option("--kernel", help="The nodes' kernel messages too.")] = False,
    every: Pause = 3.0,
) -> int:
    """Print what the nodes of a job write.

    Example: trainyard logs digits -f --rank 0
    """
    from trainyard.logs import logs

    return logs(command, name, follow=follow, rank=rank, attempt=attempt, kernel=kernel, every_s=every)


@add_command(app, "stop")
def stop(
    command: Command,
    name: Name,
    kind: Annotated[str | None, typer.Option("--kind", metavar="KIND", help=KIND)] = None,
) -> int:
    """Stop a job, a grid or a search at once, without a question.

    Example: trainyard stop digits
    """
    from trainyard.stopping import stop

    return stop(command, name, choose_kind(kind))


@add_command(app, "artifacts")
def artifacts(
    command: Command,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the job.")],
    to: Annotated[Path | None, typer.Option("--to", metavar="DIR", help="Download into this folder.")] = None,
    rank: Annotated[int | None, typer.Option("--rank", metavar="N", min=0, help="Of this node alone.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace other files that are in the way.")] = False,
) -> int:
    """List what a job kept in ARTIFACTS_DIR, or download it.

    Example: trainyard artifacts digits --to results
    """
    from trainyard.artifacts import artifacts

    return artifacts(command, name, to=to, rank=rank, force=force)


@add_command(app, "report")
def report(
    command: Command,
    name: Name,
    kind: Annotated[str | None, typer.Option("--kind", metavar="KIND", help=KIND)] = None,
    opens: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
) -> int:
    """Open the page of a job, a grid or a search; with --json, print its report.

    Example: trainyard report digits
    """
    from trainyard.reports import report

    return report(command, name, kind=choose_kind(kind), opens=opens)


@add_command(app, "open")
def open_bench(
    command: Command,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the job, a workbench that runs.")],
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=1024, max=65535, help="The port of this computer.")
    ] = 8888,
    prints: Annotated[
        bool, typer.Option("--print", help="Print the command and the address, and open nothing.")
    ] = False,
    opens: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
) -> int:
    """Open a workbench: a tunnel of Session Manager to it, and its page.

    Ctrl-C closes the tunnel, not the workbench.

    Example: trainyard open bench-1
    """
    from trainyard.opening import open_bench

    return open_bench(command, name, port=port, prints=prints, opens=opens)


@add_command(grids, "run")
def run_grid(
    command: Command,
    manifest: Annotated[Path | None, typer.Argument(metavar="[MANIFEST]", help="CSV or JSON Lines; uploaded.")] = None,
    given: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="The input beside the manifest, as JSON.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the grid (default: the file's, and the time).")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Show what happens until the grid ends.")] = True,
    every: Pause = 5.0,
) -> int:
    """Start a grid of a manifest, and follow it.

    Example: trainyard grid run manifest.csv --input input.json
    """
    from trainyard.grids import run_grid

    return run_grid(command, manifest, given=given, name=name, follow=follow, every_s=every)


@add_command(grids, "status")
def grid_status(
    command: Command,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the grid.")],
    follow: Follow = False,
    every: Pause = 5.0,
) -> int:
    """Show how far a grid has come.

    Example: trainyard grid status sweep-7 -f
    """
    from trainyard.grids import grid_status

    return grid_status(command, name, kind="grid", follow=follow, every_s=every)


@add_command(grids, "results")
def grid_results(
    command: Command, name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the grid.")]
) -> int:
    """Print the lines that have ended, and why others did not complete.

    Example: trainyard grid results sweep-7
    """
    from trainyard.grids import grid_results

    return grid_results(command, name)


@add_command(searches, "run")
def run_search(
    command: Command,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The search's input, as JSON.")],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the search (default: the file's, and the time)."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Show what happens until the search ends.")
    ] = True,
    every: Pause = 5.0,
) -> int:
    """Start a search, and follow it.

    Example: trainyard search run search.json
    """
    from trainyard.grids import run_search

    return run_search(command, file, name=name, follow=follow, every_s=every)


@add_command(searches, "status")
def search_status(
    command: Command,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the search.")],
    follow: Follow = False,
    every: Pause = 5.0,
) -> int:
    """Show how far a search has come.

    Example: trainyard search status lr -f
    """
    from trainyard.grids import grid_status

    return grid_status(command, name, kind="search", follow=follow, every_s=every)


@add_command(app, "doctor")
def doctor(command: Command) -> int:
    """Look at the account and the deployment, change nothing, and say what to do.

    Exit code 1 where anything is wrong.

    Example: trainyard doctor
    """
    from trainyard.doctor import doctor

    return doctor(command)


def run_app(arguments: Sequence[str]) -> int:
    """Carries out the command of these arguments. Returns the exit code. What is wrong with them is a document too where JSON is wanted."""
    printer = Printer(as_json=JSON_OPTION in arguments)
    try:
        return word_output(lambda: _run_words(arguments, printer), printer)
    except OSError as problem:  # typer prints help and usage itself
        if problem.errno is None:
            raise
        printer.give_up(f"stdout: {problem.strerror}; what is printed is not whole")
        return CommandExit.STOPPED


def _run_words(arguments: Sequence[str], printer: Printer) -> int:
    try:
        return int(app(args=list(arguments), prog_name="trainyard", standalone_mode=False) or CommandExit.DONE)
    except typer.TyperException as problem:
        wrong: Any = problem  # the part of click that typer does not publish
        printer.document({"error": type(wrong).__name__, "cause": wrong.format_message()})
        wrong.show()
        return CommandExit.STOPPED
