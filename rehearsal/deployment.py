"""Synthesises the product's own stacks and deploys them with the real CDK command line to any endpoint."""

from __future__ import annotations

import copy
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from contract.timing import Timing
from rehearsal import assembly
from rehearsal.parts import Parts

ROOT = Path(__file__).parent.parent
CDK = ROOT / "node_modules" / ".bin" / "cdk"
NODE_CACHE = ROOT / "build" / "node-cache"
"""Cache of compiled scripts: with it the command line starts in three quarters of the time."""
BOOTSTRAP = ROOT / "node_modules" / "aws-cdk" / "lib" / "api" / "bootstrap" / "bootstrap-template.yaml"
BOOTSTRAPPED = {"FileAssetsBucketKmsKeyId": "AWS_MANAGED_KEY", "PublicAccessBlockConfiguration": "true"}
"""Values that `cdk bootstrap` gives to the template's parameters."""
ACCOUNT = "123456789012"
AT_ONCE = 4
"""Stacks that are deployed in parallel, if none needs another."""
CAUSE = re.compile(r"fail|error|cannot|denied|refused|missing|invalid|exception", re.IGNORECASE)
CAUSE_LINES = 12
DEPLOYING = re.compile(r"^(\S+): deploying\.\.\.")
DEPLOYED = re.compile(r"^\s*✅\s+(\S+)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
Tell = Callable[[str], None]


class DeploymentFailed(Exception):
    """A command of the deployment failed; the message names the cause first, `whole` is everything that it printed."""

    def __init__(self, command: str, whole: str) -> None:
        super().__init__(f"{cause(whole)}\n(from `{command}`)")
        self.whole = f"{command}\n{whole}"
        self.functions: Mapping[str, Sequence[str]] = {}
        """What the functions had logged by then, by function name."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """Output of a deployment: each stack's outputs, by stack name."""

    outputs: Mapping[str, Mapping[str, str]]
    left_out: Sequence[str] = ()
    """Stacks of the assembly that were not asked for."""

    def output(self, name: str) -> str:
        """Returns an output of any stack; raises KeyError if no stack has it."""
        for outputs in self.outputs.values():
            if name in outputs:
                return outputs[name]
        raise KeyError(
            f"no stack has an output {name}; there are {sorted(key for one in self.outputs.values() for key in one)}"
        )


def context(speed: float, *, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns the context of cdk.json with every duration divided by `speed`, and the overrides. A rehearsal's templates also differ in
    `master_port` (see `localaws.ports`), and in what the person asks for."""
    whole: dict[str, Any] = copy.deepcopy(json.loads((ROOT / "cdk.json").read_text())["context"])
    block = whole["trainyard"]
    block["timing"] = asdict(Timing(**block.get("timing", {})).divided(speed))
    block.update(overrides or {})
    return whole


def cause(whole: str) -> str:
    """Returns the lines of a command's output that say why it failed: the last that mention an error, or the last of all."""
    lines = [line.rstrip() for line in COLOUR.sub("", whole).splitlines() if line.strip()]
    telling = [
        line for line in lines if CAUSE.search(line) and not line.endswith("needs it")
    ]  # this line follows from another one
    return "\n".join(dict.fromkeys((telling or lines)[-CAUSE_LINES:]))


def synthesise(values: Mapping[str, Any], out: Path, tree: Path = ROOT) -> None:
    """Writes templates and assets to `out`, with the app.py of a tree of the product; needs no endpoint and no credentials."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    variables |= {"CDK_CONTEXT_JSON": json.dumps(values), "CDK_OUTDIR": str(out), "CDK_VALIDATION": "false"}
    _run([sys.executable, str(tree / "app.py")], variables, tree)


def needed(manifest: Mapping[str, Any], wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the stacks to deploy for the wanted ones, including everything they depend on, and the stacks left out."""
    artifacts = manifest["artifacts"]
    stacks = [name for name, one in artifacts.items() if one["type"] == "aws:cloudformation:stack"]
    if unknown := set(wanted) - set(stacks):
        raise ValueError(f"no stack is called {', '.join(sorted(unknown))}; there are {', '.join(stacks)}")
    found, ahead = set[str](), list(wanted)
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += artifacts[name].get("dependencies", [])
    return [name for name in stacks if name in found], [name for name in stacks if name not in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cdk:
    """Runs the CDK command line against one endpoint."""

    variables: Mapping[str, str]
    """Endpoint and credentials of the deploying person."""
    region: str
    work: Path

    def deploy(self, assembly: Path, *stacks: str, each_line: Tell | None = None) -> Deployed:
        """Deploys all stacks, or exactly the named ones without those that they need."""
        outputs = self.work / "outputs.json"
        self._cdk(
            ROOT,
            "deploy",
            *(("--exclusively", *stacks) if stacks else ("--all",)),
            "--app",
            str(assembly),
            "--method=direct",
            f"--concurrency={AT_ONCE}",
            "--require-approval=never",
            "--outputs-file",
            str(outputs),
            each_line=each_line,
        )
        return Deployed(json.loads(outputs.read_text()))

    def destroy(self, assembly: Path, *stacks: str) -> None:
        """Destroys all stacks, or exactly the named ones without those that need them."""
        which = ("--exclusively", *stacks) if stacks else ("--all",)
        self._cdk(ROOT, "destroy", *which, "--app", str(assembly), "--force")

    def _cdk(self, folder: Path, *arguments: str, each_line: Tell | None = None) -> None:
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
        variables |= {**self.variables, "AWS_REGION": self.region, "CDK_DISABLE_VERSION_CHECK": "1", "CI": "true"}
        variables["NODE_COMPILE_CACHE"] = str(NODE_CACHE)
        _run([str(CDK), *arguments, "--no-notices", "--no-version-reporting"], variables, folder, each_line)


def bootstrap(client: Callable[[str, str], Any], regions: Sequence[str]) -> None:
    """Bootstraps, once per account and region: deploys the command line's own template with its parameters, but without the seconds
    for which the command line starts and waits. `client` returns a client of a service in a region."""
    for region in regions:
        cloudformation = client("cloudformation", region)
        cloudformation.create_stack(
            StackName="CDKToolkit",
            TemplateBody=BOOTSTRAP.read_text(),
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in BOOTSTRAPPED.items()],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
        )
        (stack,) = cloudformation.describe_stacks(StackName="CDKToolkit")["Stacks"]
        if stack["StackStatus"] != "CREATE_COMPLETE":
            raise DeploymentFailed(
                f"bootstrap of {region}", f"{stack['StackStatus']}: {stack.get('StackStatusReason')}"
            )


def bring_up(
    cdk: Cdk,
    client: Callable[[str, str], Any],
    values: Mapping[str, Any],
    using: ExitStack,
    parts: Parts,
    *,
    wanted: Sequence[str] = (),
) -> tuple[Path, Deployed]:
    """Synthesises, if anything changed, and bootstraps in parallel, then deploys the wanted stacks and what they need,
    or all. Keeps the assembly for as long as `using`."""
    regions = [place["region"] for place in values["trainyard"]["regions"]]

    def synth() -> Path:
        with parts.part("synth") as part:
            folder, made = using.enter_context(assembly.kept(values, lambda out: synthesise(values, out)))
            part.note = "" if made else "nothing has changed since the last"
        return folder

    def boot() -> None:
        with parts.part("bootstrap"):
            bootstrap(client, regions)

    with ThreadPoolExecutor(2) as pool:
        try:
            both = pool.submit(synth), pool.submit(boot)
            folder = both[0].result()
            both[1].result()
        except BaseException:
            interrupt()  # otherwise the pool would wait for the other one
            raise
    stacks, left_out = needed(json.loads((folder / "manifest.json").read_text()), wanted) if wanted else ([], [])
    with parts.part("deploy"):
        watch = DeployProgress(parts)
        deployed = cdk.deploy(folder, *stacks, each_line=watch.line)
    return folder, Deployed(deployed.outputs, left_out)


class DeployProgress:
    """Turns the command line's lines about stacks into parts."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def line(self, text: str) -> None:
        plain = COLOUR.sub("", text)
        if begun := DEPLOYING.match(plain):
            self._parts.begin(f"deploy {begun[1]}")
        elif ended := DEPLOYED.match(plain):
            self._parts.end(f"deploy {ended[1]}")


def _run(command: list[str], variables: Mapping[str, str], folder: Path, each_line: Tell | None = None) -> None:
    """Runs a command to its end. An interrupt of the wait first ends the command, with everything that it started."""
    lines = []
    with subprocess.Popen(
        command,
        env=dict(variables),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        _RUNNING.add(process)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if each_line:
                    each_line(line)
            process.wait()
        except BaseException:
            _end(process)
            raise
        finally:
            _RUNNING.discard(process)
    if process.returncode:
        words = " ".join(Path(part).name if i == 0 else part for i, part in enumerate(command))
        raise DeploymentFailed(words, "".join(lines))


_RUNNING: set[subprocess.Popen[str]] = set()
"""Commands in sessions of their own, so that an interrupt from the terminal does not reach them."""


def interrupt() -> None:
    """Ends all commands of deployments, with everything that they started."""
    for process in list(_RUNNING):
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
