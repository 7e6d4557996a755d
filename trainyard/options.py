"""The options that every command takes, and what a command makes of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from contract.codec import is_text
from trainyard import interrupts
from trainyard.printer import Printer
from trainyard.settings import SettingsFile, find_settings, name_deployment
from trainyard.stops import CannotProceed, CommandExit, OutputClosed, OutputFailed, say_problem

if TYPE_CHECKING:
    from stacks.settings import Settings
    from trainyard.deployment import Deployment

JSON_OPTION = "--json"
SHARED: dict[str, Any] = {
    "as_json": Annotated[bool, typer.Option(JSON_OPTION, help="Print JSON on stdout; messages go to stderr.")],
    "settings": Annotated[
        Path | None,
        typer.Option(
            "--settings", metavar="FILE", help="The deployment's cdk.json (default: ./cdk.json, or the checkout's)."
        ),
    ],
    "deployment": Annotated[
        str | None, typer.Option("--deployment", metavar="NAME", help="The deployment (default: that of the settings).")
    ],
    "region": Annotated[
        str | None, typer.Option("--region", metavar="NAME", help="Its home region (default: that of the settings).")
    ],
    "profile": Annotated[str | None, typer.Option("--profile", metavar="NAME", help="A profile of ~/.aws/config.")],
    "endpoint_url": Annotated[
        str | None,
        typer.Option(
            "--endpoint-url", metavar="URL", help="Where AWS is, if elsewhere (also the variable AWS_ENDPOINT_URL)."
        ),
    ],
}
"""Parameter to its type, with the option."""
DEFAULTS: dict[str, Any] = {"as_json": False}
INTERRUPTED = "interrupted; what runs in AWS goes on"
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One call of a command: where it prints, and which deployment it is about."""

    printer: Printer
    settings: Path | None = None
    deployment: str | None = None
    region: str | None = None
    profile: str | None = None
    endpoint_url: str | None = None

    def find_settings(self) -> SettingsFile:
        """Raises CannotProceed where there is none."""
        return find_settings(self.settings, Path.cwd())

    def parse_settings(self) -> Settings:
        """Returns the settings of the deployment that the options name. Raises CannotProceed where the file cannot be its."""
        file = self.find_settings()
        regions = file.parse().training
        name, region = name_deployment(file, self.deployment, self.region)
        if region not in regions:
            raise CannotProceed(
                f"--region: {file.path} has no region {region} that trains, so it is not that deployment's; allowed: {', '.join(regions)}, "
                "or --settings with its cdk.json"
            )
        return replace(file, block={**file.block, "deployment": name, "home_region": region}).parse()

    def name_deployment(self) -> tuple[str, str]:
        """Returns the deployment's name and its home region. With both given, no settings are read."""
        named = self.deployment is not None and self.region is not None and self.settings is None
        file = SettingsFile(Path(), {}) if named else self.find_settings()
        return name_deployment(file, self.deployment, self.region)

    def open_deployment(self) -> Deployment:
        """Begins the session of AWS, and reads where the deployment's parts are. Raises CannotProceed, or what botocore raises."""
        from trainyard.deployment import begin_session, find_deployment

        name, region = self.name_deployment()
        begin_session(region=region, profile=self.profile, endpoint_url=self.endpoint_url)
        return find_deployment(name, region)


def carry_out(call: Callable[[], int], given: Mapping[str, object], printer: Printer) -> int:
    """Returns the exit code of a command, whatever becomes of it: an error is its lines, and in JSON a document too."""
    return word_output(lambda: _word_interrupt(call, given, printer), printer)


def word_output(call: Callable[[], int], printer: Printer) -> int:
    """Returns the exit code of a call, also where what it prints cannot be written or is no longer read."""
    try:
        return call()
    except OutputFailed as problem:
        printer.give_up(str(problem))
        return CommandExit.STOPPED
    except OutputClosed:
        return CommandExit.LEFT


def _word_interrupt(call: Callable[[], int], given: Mapping[str, object], printer: Printer) -> int:
    try:
        interrupts.begin_command()
        return _word_errors(call, given, printer)
    except KeyboardInterrupt as problem:
        words = str(problem) or INTERRUPTED
        printer.document({"error": KeyboardInterrupt.__name__, "cause": words})
        printer.complain(words)
        return CommandExit.LEFT


def _word_errors(call: Callable[[], int], given: Mapping[str, object], printer: Printer) -> int:
    try:
        for option, value in given.items():
            if isinstance(value, str) and not is_text(value):
                raise CannotProceed(f"{option}: {value!a} is not text in UTF-8; allowed: text")
        return call()
    except OutputClosed:
        raise
    except Exception as problem:
        say_problem(problem, printer)
        return CommandExit.STOPPED


def choose_pause(given: float) -> float:
    """Accepts seconds between two looks. Raises BadParameter."""
    if not SHORTEST_PAUSE_S <= given <= LONGEST_PAUSE_S:  # NaN is in no range
        raise typer.BadParameter(f"{given:g} is not in the range {SHORTEST_PAUSE_S:g}<=x<={LONGEST_PAUSE_S:g}.")
    return given


Pause = Annotated[
    float, typer.Option("--every", metavar="S", callback=choose_pause, help="Seconds between two looks, 0.2 to 3600.")
]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Show what happens until it ends.")]


def add_command(app: typer.Typer, name: str) -> Callable[[Callable[..., int]], Callable[..., None]]:
    """Makes a function a command. Its first parameter is the Command, which the shared options become; it returns the exit code."""

    def decorate(function: Callable[..., int]) -> Callable[..., None]:
        @wraps(function)
        def run(**given: Any) -> None:
            shared = {option: given.pop(option) for option in SHARED}
            printer = Printer(as_json=shared.pop("as_json"))
            raise typer.Exit(
                carry_out(lambda: function(Command(printer=printer, **shared), **given), given | shared, printer)
            )

        parameters = list(inspect.signature(function).parameters.values())
        own = get_type_hints(function, include_extras=True)
        run.__annotations__ = {one.name: own[one.name] for one in parameters[1:]} | SHARED
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                *(one.replace(annotation=own[one.name], kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters[1:]),
                *(
                    inspect.Parameter(
                        option, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS.get(option), annotation=kind
                    )
                    for option, kind in SHARED.items()
                ),
            ]
        )
        app.command(name)(run)
        return run

    return decorate


__all__ = ["JSON_OPTION", "Command", "CommandExit", "Follow", "Pause", "add_command"]
