"""Runs a build: unpacks its source, runs its buildspec's commands with bash, and sends their output to the project's log."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from localaws.containers import real
from localaws.containers.container import BASIC
from localaws.containers.logs import LogStream
from localaws.services.codebuild_model import Build

if TYPE_CHECKING:
    from localaws.server import LocalAws

ROOT = Path(__file__).parents[2]
STANDINS = ROOT / "localaws" / "machines" / "standins" / "images"
AWS_CLI = ROOT / "build" / "ami" / "bin"
"""The AWS command line of the rehearsal's machine image, in the place of CodeBuild's."""
PHASES = ("install", "pre_build", "build", "post_build")


class Run:
    """Runs one build in a thread of its own."""

    def __init__(self, aws: LocalAws, build: Build, region: str) -> None:
        self._aws, self.build, self._project, self._region = aws, build, build.project, region
        self._folder = aws.work / "builds" / build.stream
        self._process: subprocess.Popen[str] | None = None
        self._stopped = threading.Event()
        self._log: LogStream | None = None

    def stop(self) -> None:
        """Ends the process and everything it started, as StopBuild does."""
        self._stopped.set()
        if self._process and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def run(self) -> None:
        try:
            self._open_log()
            self._unpack()
            self.build.failed_in, self.build.why = self._commands()
        except Exception as problem:  # CodeBuild reports its own errors by the phase in which they occur
            self.build.failed_in, self.build.why = self.build.phase, f"{type(problem).__name__}: {problem}"
        if self._log:
            self._log.flush()
        self.build.ended, failed = time.time(), "FAILED" if self.build.failed_in else "SUCCEEDED"
        self.build.status = "STOPPED" if self._stopped.is_set() else failed

    def _client(self, service: str) -> Any:
        return self._aws.client(service, self._region, role=self._project["serviceRole"], throttled=False)

    def _open_log(self) -> None:
        self.build.phase = "PROVISIONING"
        if self.build.group:
            self._log = LogStream(self._client("logs"), self.build.group, self.build.stream)
        really = real.registry(self._aws.work / "images")
        what = (
            "builds are buildah's, on bases of this computer's own"
            if really
            else "no image is made, but manifests are pushed"
        )
        self._say(f"[Container] Docker is a stand-in here: {what}")

    def _unpack(self) -> None:
        self.build.phase = "DOWNLOAD_SOURCE"
        self._folder.mkdir(parents=True)
        if self._project["source"]["type"] == "S3":
            bucket, _, key = self._project["source"]["location"].partition("/")
            s3 = self._client("s3")
            # CodeBuild asks a source's bucket for both, with the rights of the project's role.
            s3.get_bucket_location(Bucket=bucket)
            s3.get_bucket_acl(Bucket=bucket)
            body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
            with zipfile.ZipFile(io.BytesIO(body)) as archive:
                archive.extractall(self._folder)

    def _commands(self) -> tuple[str, str]:
        """Returns the phase whose command failed, and CodeBuild's message about it; empty if none failed."""
        specification = yaml.safe_load(self._project["source"]["buildspec"])
        for phase in PHASES:
            self.build.phase = phase.upper()
            for command in specification["phases"].get(phase, {}).get("commands", []):
                self._say(f"[Container] Running command {command}")
                if code := self._command(command):
                    why = f"Error while executing command: {command}. Reason: exit status {code}"
                    self._say(f"[Container] Phase context status code: COMMAND_EXECUTION_ERROR Message: {why}")
                    return self.build.phase, why
        return "", ""

    def _command(self, command: str) -> int:
        if self._stopped.is_set():
            return 1
        # Not divided by the rehearsal's speed: like a function, a build computes in real seconds.
        limit = self._project["timeoutInMinutes"] * 60
        self._process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        timer = threading.Timer(limit, self.stop)
        timer.daemon = True
        timer.start()
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._say(line.rstrip("\n"))
        code = self._process.wait()
        timer.cancel()
        return code

    def _environment(self) -> dict[str, str]:
        """Returns CodeBuild's variables, and where the stand-in keeps images of other registries."""
        programs = (str(STANDINS), str(Path(sys.executable).parent), str(AWS_CLI), BASIC)
        return {
            "PATH": ":".join(programs),
            "HOME": str(self._folder),
            "AWS_REGION": self._region,
            "AWS_DEFAULT_REGION": self._region,
            "CODEBUILD_BUILD_ID": self.build.id,
            "CODEBUILD_BUILD_ARN": self.build.arn,
            "CODEBUILD_SRC_DIR": str(self._folder),
            "IMAGES": str(self._aws.work / "images"),
            **self._aws.environment(),
            **self._aws.credentials_for(self._project["serviceRole"], throttled=False).variables(),
            **self.build.overrides,
        }

    def _say(self, line: str) -> None:
        if self._log:
            self._log.say(line)
