"""Stands in for docker on a machine of the rehearsal: images are pulled from the local ECR, containers are process trees of their own.

A container outlives the client that started it, as under docker's daemon. An image that buildah has built runs in its own root, with the
job's folders mounted. Of any other there are only the files that its Dockerfile copies: without a root of its own, paths of the container
are translated in its words and variables, and nothing keeps it from the machine's other files. The container says first which
it is. Neither has namespaces of processes or the network. GPUs and devices are only checked for.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from localaws.containers import own_root, real
from localaws.containers.base import DEEP_LEARNING
from localaws.containers.images import NotRunnable, image_of
from localaws.containers.shim import descendants, read, state_of, write
from localaws.containers.unpacked import COPIED, OWN, unpack
from localaws.model import ACCOUNT

ENV_LINE = 64 * 1024
"""The longest line of an environment file that docker reads."""
KEY, SECRET = 20, 40
"""Characters of an access key and of its secret: the local ECR's password is made of both, and of a session's token."""
KEPT = (
    "AWS_ENDPOINT_URL",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "OMP_NUM_THREADS",
    "OMPI_MCA_coll",
    "PIP_",
    "SSL_CERT_",
)
"""Beginnings of the names of variables that stand for what a container has by the machine's network."""
REFUSED = 125
TIME = "2026-01-01T00:00:00Z"


class Daemon:
    """Docker of one machine."""

    def __init__(self, root: Path, images: Path, settings: Path) -> None:
        """`root` is the machine's; `images` has what builds of the rehearsal made."""
        self._root, self._images, self._settings = root, images, settings
        self._home = root / "var/lib/docker"
        self._home.mkdir(parents=True, exist_ok=True)
        self._store = self._home / "store"

    def main(self, words: Sequence[str]) -> int:
        match list(words):
            case ["info", "--format", "[{{json .DockerRootDir}},{{json .DriverStatus}}]"]:
                print(json.dumps([str(self._home), []]))
            case ["image", "inspect", "--format", "{{.Id}}", address]:
                if not self._pulled(address).exists():
                    return _error(f"Error response from daemon: No such image: {address}")
                print(address.rpartition("@")[2])
            case ["login", "--username", user, "--password-stdin", registry]:
                self._login(user, registry, sys.stdin.read().strip())
            case ["pull", "--quiet", address]:
                self._pull(address)
            case ["container", "inspect", "--format", "{{json .State}}", name]:
                if (state := read(self._of(name))) is None:
                    return _error(f"Error response from daemon: No such container: {name}")
                print(json.dumps(state))
            case ["kill", "--signal", number, name]:
                return self._kill(name, signal.Signals[number])
            case ["rm", "--force", "--volumes", name]:
                return self._remove(name)
            case ["run", *options]:
                return self._run(options)
            case _:
                return _error(f"docker: '{' '.join(words)}' is not a docker command.")
        return 0

    # images

    def _login(self, user: str, registry: str, password: str) -> None:
        if not password:
            sys.exit("Error: Password Required")
        self._settings.mkdir(parents=True, exist_ok=True)
        auth = base64.b64encode(f"{user}:{password}".encode()).decode()
        (self._settings / "config.json").write_text(json.dumps({"auths": {registry: {"auth": auth}}}))
        print("Login Succeeded")

    def _pulled(self, address: str) -> Path:
        return self._home / "images" / hashlib.sha256(address.encode()).hexdigest()

    def _pull(self, address: str) -> None:
        """As a pull does: the manifest by its digest, then what it names, with the rights of whoever asked for the login."""
        from botocore.exceptions import ClientError
        from botocore.session import get_session

        registry, _, rest = address.partition("/")
        repository, _, digest = rest.partition("@")
        password = self._password(registry)
        if not password:
            sys.exit(
                f'Error response from daemon: Head "https://{registry}/v2/{repository}/manifests/{digest}": no basic auth credentials'
            )
        account, _, _, region, *_ = registry.split(".")
        ecr: Any = get_session().create_client(
            "ecr",
            region_name=region,
            aws_access_key_id=password[:KEY],
            aws_secret_access_key=password[KEY : KEY + SECRET],
            aws_session_token=password[KEY + SECRET :],
        )
        where = {"registryId": account, "repositoryName": repository}
        try:
            found = ecr.batch_get_image(**where, imageIds=[{"imageDigest": digest}])["images"]
            if not found:
                sys.exit(
                    f"Error response from daemon: manifest for {address} not found: manifest unknown: Requested image not found"
                )
            manifest = found[0]["imageManifest"]
            said = json.loads(manifest)["config"]["digest"]
            link = ecr.get_download_url_for_layer(**where, layerDigest=said)["downloadUrl"]
        except ClientError as problem:
            words = problem.response["Error"].get("Message", "")
            sys.exit(f"Error response from daemon: pull access denied for {registry}/{repository}: denied: {words}")
        with urllib.request.urlopen(link) as answer:
            config = answer.read()
        if f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}" != digest:
            sys.exit(f"Error response from daemon: manifest verification failed for digest {digest}")
        place = self._pulled(address)
        place.parent.mkdir(parents=True, exist_ok=True)
        for one in self._stands_for(account, digest):
            with suppress(subprocess.CalledProcessError):  # not built here
                unpack(self._store, one)
                place.with_suffix(".real").write_text(one)
                break
        place.write_bytes(config)
        print(address)

    def _stands_for(self, account: str, digest: str) -> list[str]:
        """Returns where the image's root may be: what was built here, or the base that stands for AWS's containers."""
        if not (registry := real.registry(self._images)):
            return []
        return [f"{registry}/images@{digest}"] + ([f"{registry}/base:{DEEP_LEARNING}"] if account != ACCOUNT else [])

    def _password(self, registry: str) -> str:
        with suppress(OSError, ValueError, KeyError):
            auths = json.loads((self._settings / "config.json").read_text())["auths"]
            return base64.b64decode(auths[registry]["auth"]).decode().partition(":")[2]
        return ""

    # containers

    def _of(self, name: str) -> Path:
        return self._home / "containers" / name

    def _kill(self, name: str, number: signal.Signals) -> int:
        state = read(self._of(name))
        if state is None:
            return _error(f"Error response from daemon: Cannot kill container: {name}: No such container: {name}")
        if not state["Running"]:
            return _error(f"Error response from daemon: Cannot kill container: {name}: container {name} is not running")
        if number is signal.SIGKILL:
            _end(self._of(name), state["Pid"])
        else:
            with suppress(ProcessLookupError):
                os.kill(state["Pid"], number)
        print(name)
        return 0

    def _remove(self, name: str) -> int:
        if (state := read(self._of(name))) is None:
            return _error(f"Error response from daemon: No such container: {name}")
        if state["Running"]:
            _end(self._of(name), state["Pid"])
        shutil.rmtree(self._of(name), ignore_errors=True)
        print(name)
        return 0

    def _run(self, options: Sequence[str]) -> int:
        given = _options(options)
        address, folder = given.image, self._of(given.name)
        if folder.exists():
            _refuse(f'Conflict. The container name "/{given.name}" is already in use')
        if not self._pulled(address).exists():
            _refuse(f"No such image: {address}")
        if given.gpus and not (self._root / "var/lib/gpus").exists():
            _refuse('could not select device driver "" with capabilities: [[gpu]]')
        _mounts(given.mount)  # refuses what is not there
        said = (json.loads(self._pulled(address).read_bytes()).get("config")) or {}
        words = _words(given, said)
        if not words:
            _refuse("no command specified")
        own = self._pulled(address).with_suffix(".real")
        start = self._start_of(own.read_text(), given, said, words) if own.exists() else self._stand_in(given, words)
        write(folder, state_of("created"))
        (folder / "start.json").write_text(json.dumps(start))
        return _attached(folder)

    def _start_of(
        self, image: str, given: argparse.Namespace, said: Mapping[str, Any], words: list[str]
    ) -> dict[str, Any]:
        """In the image's own root, with the folders mounted at their places."""
        print(OWN, flush=True)
        found = unpack(self._store, image)
        return own_root.start(
            str(found.root),
            words,
            _without(given, {**_network(), "HOME": "/root", **found.variables, **_environment(given)}),
            given.workdir or said.get("WorkingDir") or "/",
            mounts=[*found.mounts, *((str(source), target, read) for source, target, read in _mounts(given.mount))],
            user=found.user,
            init=given.init,
        )

    def _stand_in(self, given: argparse.Namespace, words: list[str]) -> dict[str, Any]:
        """Without a root of its own: every path is translated."""
        print(COPIED, flush=True)
        root = self._of(given.name) / "root"
        try:
            image = image_of(self._images, given.image.rpartition("@")[2])
            image.lay_out(root)
        except NotRunnable as problem:
            _refuse(f"this rehearsal cannot run {given.image}: {problem}")
        (root / "root").mkdir(parents=True, exist_ok=True)
        inside = Inside(root, {target: source for source, target, _ in _mounts(given.mount)})
        here = str(
            Path(sys.executable).parent
        )  # the Python of the machine's image stands in for that of the container's
        usual = {"PATH": f"{here}:/usr/local/bin:/usr/bin:/bin", "HOME": str(root / "root"), "LANG": "C.UTF-8"}
        baked = {name: inside.all(value) for name, value in image.variables.items()}
        asked = {name: inside.all(value) for name, value in _environment(given).items()}
        workdir = Path(inside.here(given.workdir or image.workdir or "/"))
        workdir.mkdir(parents=True, exist_ok=True)
        variables = _without(given, {**_network(), **usual, **baked, **asked})
        return {"words": [*map(inside.here, words)], "variables": variables, "folder": str(workdir)}


class Inside:
    """Translates the container's paths to this computer's: those of its mounts, and those of its image's own files."""

    def __init__(self, root: Path, mounts: Mapping[str, Path]) -> None:
        self._root = root
        self._mounts = sorted(mounts.items(), key=lambda one: -len(one[0]))

    def here(self, word: str) -> str:
        for target, source in self._mounts:
            if word == target or word.startswith(f"{target}/"):
                return str(source) + word[len(target) :]
        own = self._root / word.lstrip("/")
        return str(own) if word.startswith("/") and own.exists() else word

    def all(self, value: str) -> str:
        """Of a variable, which may be a list of paths."""
        return ":".join(map(self.here, value.split(":"))) if "/" in value else value


def _attached(folder: Path) -> int:
    """Starts the container's first process, which belongs to nobody here, and hands on what it prints until it ends."""
    shim = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("shim.py")), str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: os.kill(shim.pid, number))
    assert shim.stdout is not None
    while chunk := os.read(shim.stdout.fileno(), 65536):
        os.write(1, chunk)
    shim.wait()
    state = read(folder)
    return int(state["ExitCode"]) if state and not state["Running"] else 128 + signal.SIGKILL


def _end(folder: Path, pid: int) -> None:
    """Kills everything of the container, as the end of its namespace does."""
    until = time.monotonic() + 10
    while (found := descendants(pid)) and time.monotonic() < until:
        for one in found:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    write(folder, state_of("exited", code=128 + signal.SIGKILL, started=TIME))


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("docker run", allow_abbrev=False, add_help=False)
    for name in ("name", "pull", "log-driver", "network", "shm-size", "pids-limit", "oom-score-adj", "gpus"):
        parser.add_argument(f"--{name}", default="")
    for name in ("env-file", "workdir", "entrypoint"):
        parser.add_argument(f"--{name}", default="")
    for name in ("ulimit", "device", "mount", "env"):
        parser.add_argument(f"--{name}", action="append", default=[])
    for name in ("init", "no-healthcheck"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("image")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    parser.error = lambda message: _refuse(message)  # type: ignore[method-assign]
    return parser.parse_args(list(options))


def _mounts(given: Sequence[str]) -> list[tuple[Path, str, bool]]:
    """Source, target, and whether it is read only."""
    found = []
    for text in given:
        (fields,) = csv.reader([text])
        named = {name: value for name, _, value in (field.partition("=") for field in fields)}
        if not Path(named["source"]).exists():
            _refuse(f'invalid mount config for type "bind": bind source path does not exist: {named["source"]}')
        found.append((Path(named["source"]), named["target"].rstrip("/"), "readonly" in fields))
    return found


def _environment(given: argparse.Namespace) -> dict[str, str]:
    found = {name: os.environ[name] for name in given.env if name in os.environ}
    for line in Path(given.env_file).read_text("utf-8").splitlines() if given.env_file else []:
        if len(line.encode()) > ENV_LINE:
            _refuse("bufio.Scanner: token too long")
        if line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            found |= {name: value} if equals else {}
    return found


def _without(given: argparse.Namespace, variables: Mapping[str, str]) -> dict[str, str]:
    """Takes away what is named without a value anywhere, as docker does with a variable of the image's."""
    return {name: value for name, value in variables.items() if name not in given.env or name in os.environ}


def _words(given: argparse.Namespace, said: Mapping[str, Any]) -> list[str]:
    if given.entrypoint:
        return [given.entrypoint, *given.words]
    return [*(said.get("Entrypoint") or []), *(given.words or said.get("Cmd") or [])]


def _network() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(KEPT)}


def _refuse(message: str) -> NoReturn:
    sys.exit(_error(f"docker: Error response from daemon: {message}.", REFUSED))


def _error(message: str, code: int = 1) -> int:
    print(message, file=sys.stderr, flush=True)
    return code


def main(words: list[str]) -> int:
    settings = Path(os.environ.get("HOME", "/"), ".docker")
    if words[:1] == ["--config"]:
        settings, words = Path(words[1]), words[2:]
    return Daemon(Path(os.environ["LOCAL_AWS_ROOT"]), Path(os.environ["LOCAL_AWS_IMAGES"]), settings).main(words)
