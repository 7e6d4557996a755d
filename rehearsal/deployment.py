"""Synthesises and deploys the product's own stacks with the real CDK command line, onto whatever endpoint it is given."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from contract.timing import Timing

ROOT = Path(__file__).parent.parent
CDK = ROOT / "node_modules" / ".bin" / "cdk"
ACCOUNT = "123456789012"


class DeploymentFailed(Exception):
    """The CDK command line ended with an error; the message holds what it printed."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """What a deployment printed: stack name to its outputs."""

    outputs: Mapping[str, Mapping[str, str]]

    def output(self, name: str) -> str:
        """An output of any stack; raises KeyError where no stack has it."""
        for outputs in self.outputs.values():
            if name in outputs:
                return outputs[name]
        raise KeyError(
            f"no stack has an output {name}; there are {sorted(key for one in self.outputs.values() for key in one)}"
        )


def context(speed: float, *, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The context of cdk.json with every duration divided by `speed`, and the overrides. Beside the durations a rehearsal's
    templates differ in `master_port` (see `rehearsal.ports`), and in what the person asks for."""
    whole: dict[str, Any] = copy.deepcopy(json.loads((ROOT / "cdk.json").read_text())["context"])
    block = whole["trainyard"]
    block["timing"] = asdict(Timing(**block.get("timing", {})).divided(speed))
    block.update(overrides or {})
    return whole


def synthesise(values: Mapping[str, Any], out: Path) -> None:
    """Templates and assets into `out`, by the product's own app.py; no endpoint, no credentials."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    variables |= {"CDK_CONTEXT_JSON": json.dumps(values), "CDK_OUTDIR": str(out), "CDK_VALIDATION": "false"}
    _run([sys.executable, str(ROOT / "app.py")], variables, ROOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cdk:
    """The CDK command line against one endpoint."""

    variables: Mapping[str, str]
    """Endpoint and credentials of the person who deploys."""
    region: str
    work: Path

    def bootstrap(self, *regions: str) -> None:
        """Once an account and region; from an empty folder, so that the command line does not run the app for it."""
        with tempfile.TemporaryDirectory() as empty:
            self._cdk(Path(empty), "bootstrap", *(f"aws://{ACCOUNT}/{region}" for region in regions or (self.region,)))

    def deploy(self, assembly: Path, *stacks: str) -> Deployed:
        """All stacks, or the named ones and nothing that they need."""
        outputs = self.work / "outputs.json"
        self._cdk(
            ROOT,
            "deploy",
            *(("--exclusively", *stacks) if stacks else ("--all",)),
            "--app",
            str(assembly),
            "--method=direct",
            "--require-approval=never",
            "--outputs-file",
            str(outputs),
        )
        return Deployed(json.loads(outputs.read_text()))

    def destroy(self, assembly: Path, *stacks: str) -> None:
        """All stacks, or the named ones and nothing that needs them."""
        which = ("--exclusively", *stacks) if stacks else ("--all",)
        self._cdk(ROOT, "destroy", *which, "--app", str(assembly), "--force")

    def _cdk(self, folder: Path, *arguments: str) -> None:
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
        variables |= {**self.variables, "AWS_REGION": self.region, "CDK_DISABLE_VERSION_CHECK": "1", "CI": "true"}
        _run([str(CDK), *arguments, "--no-notices", "--no-version-reporting"], variables, folder)


def bring_up(cdk: Cdk, values: Mapping[str, Any], assembly: Path) -> Deployed:
    """Synthesis and bootstrap side by side, then the deployment."""
    with ThreadPoolExecutor(2) as pool:
        regions = [place["region"] for place in values["trainyard"]["regions"]]
        both = [pool.submit(synthesise, values, assembly), pool.submit(cdk.bootstrap, *regions)]
        for one in both:
            one.result()
    return cdk.deploy(assembly)


def _run(command: list[str], variables: Mapping[str, str], folder: Path) -> None:
    done = subprocess.run(
        command, env=dict(variables), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise DeploymentFailed(
            f"{' '.join(Path(command[0]).name if i == 0 else part for i, part in enumerate(command))}\n{done.stdout}"
        )
