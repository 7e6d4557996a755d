"""Reads which deployment is meant, and what its settings allow, from a cdk.json."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contract import names
from trainyard import interrupts
from trainyard.stops import CannotProceed

if TYPE_CHECKING:
    from stacks.settings import Settings

CHECKOUT = Path(__file__).parents[1]
FILE = "cdk.json"
QUALIFIER = "@aws-cdk/core:bootstrapQualifier"
NO_ACCOUNT = "0" * 12
"""Stands for the account in names where no request says which one it is: registries and ARNs have to be whole."""
DEPLOYMENT_MAY_BE = "2 to 20 lower-case letters, digits and single hyphens"
DEPLOYMENT = re.compile(r"[a-z](-?[a-z0-9]){1,19}")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A cdk.json, and its block of settings as it stands there."""

    path: Path
    block: dict[str, Any]
    qualifier: str = "hnb659fds"
    """Of the CDK's bootstrap in the account; the default is the CDK's own."""

    def parse(self) -> Settings:
        """Returns the settings, checked as a synth checks them. Raises CannotProceed with a line for each problem."""
        with interrupts.hold():  # the CDK begins node
            from stacks.settings import BadSettings, Settings

        try:
            return Settings.parse(self.block)
        except BadSettings as problem:
            raise CannotProceed(f"{self.path}: {problem}") from None


def read_json(path: Path) -> Any:
    """Returns what a file of JSON holds. Raises CannotProceed."""
    if path.is_dir():
        raise CannotProceed(f"{path}: is a folder; allowed: a file of JSON")
    try:
        return json.loads(
            path.read_text(encoding="utf-8-sig")
        )  # editors of Windows begin a file with a byte order mark
    except FileNotFoundError:
        raise CannotProceed(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise CannotProceed(f"{path}: is not text in UTF-8; allowed: a file of JSON") from None
    except OSError as problem:
        raise CannotProceed(f"{path}: {problem.strerror}") from None
    except (ValueError, RecursionError) as problem:
        raise CannotProceed(f"{path}: is not JSON: {problem}") from None


def read_object(path: Path) -> dict[str, Any]:
    """Returns the object that a file of JSON holds. Raises CannotProceed."""
    refuse_sql(path)
    found = read_json(path)
    if not isinstance(found, dict):
        raise CannotProceed(f"{path}: is not a JSON object")
    return found


def refuse_sql(path: Path) -> None:
    """Raises CannotProceed for a file of SQL, which no command reads."""
    from grid_plan.statements import OF_SQL

    if path.suffix.lower() in OF_SQL:
        raise CannotProceed(
            f"{path}: is SQL; allowed: its text as `query` in the input of a grid (jq -Rs '{{query: .}}' {path} > grid.json, then "
            "`trainyard grid run --input grid.json`)"
        )


def find_settings(named: Path | None, here: Path) -> SettingsFile:
    """Returns the settings file that a person names, or the one of the folder `here`, or the checkout's own. Raises CannotProceed."""
    if named is not None:
        if (found := _read_file(named)) is None:
            raise CannotProceed(
                f"--settings {named}: has no block context.trainyard; allowed: the {FILE} of a deployment"
            )
        return found
    for path in (here / FILE, CHECKOUT / FILE):
        if path.is_file() and (found := _read_file(path)) is not None:
            return found
    raise CannotProceed(
        f"--settings: no {FILE} here or in {CHECKOUT} has a block context.trainyard; allowed: the path of one"
    )


def _read_file(path: Path) -> SettingsFile | None:
    context = read_object(path).get("context")
    if not isinstance(context, dict) or not isinstance(block := context.get("trainyard"), dict):
        return None
    qualifier = context.get(QUALIFIER)
    return SettingsFile(path, block, qualifier) if isinstance(qualifier, str) else SettingsFile(path, block)


def name_deployment(file: SettingsFile, deployment: str | None, region: str | None) -> tuple[str, str]:
    """Returns the deployment's name and its home region: as a person names them, or as the file does. Raises CannotProceed."""
    found = {
        "deployment": deployment or file.block.get("deployment"),
        "home_region": region or file.block.get("home_region"),
    }
    if None in found.values():
        settings = file.parse()
        found = {name: given or getattr(settings, name) for name, given in found.items()}
    name, home = str(found["deployment"]), str(found["home_region"])
    if not DEPLOYMENT.fullmatch(name):
        raise CannotProceed(f"--deployment: {name} is not the name of a deployment; allowed: {DEPLOYMENT_MAY_BE}")
    if not names.REGION_PATTERN.fullmatch(home):
        raise CannotProceed(
            f"--region: {home} is not a region; allowed: the deployment's home region, as in eu-central-1"
        )
    return name, home
