"""The command `open`: the tunnel to a workbench, by AWS's own command line, and its page in the browser.

Of the node's log, to which any code on the node may write, only the token is used; region and instance are those that Launch answered.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from contract import names, workbench
from trainyard.deployment import Deployment
from trainyard.interrupts import hear_every_end
from trainyard.logs import LogFilter, LogReader
from trainyard.options import Command
from trainyard.reports import open_browser
from trainyard.stops import CannotProceed, CommandExit
from trainyard.story import Try
from trainyard.watching import find, read_story

PROGRAMS = {
    "aws": "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    "session-manager-plugin": (
        "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"
    ),
}
"""What the tunnel needs on a person's computer, and where to get it."""
LOOK_S = 0.5
END_S = 5.0
"""How long the tunnel may take to end."""
ANSWER_S = 5.0
"""How long JupyterLab may take to answer before it is asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WayIn:
    """How a bench is opened from this computer."""

    command: Sequence[str]
    address: str


def open_bench(
    command: Command,
    name: str,
    *,
    port: int,
    prints: bool,
    opens: bool,
    sleep: Callable[[float], object] = time.sleep,
) -> int:
    """Returns the exit code: that the tunnel was closed, or that it never was open."""
    printer, deployment = command.printer, command.open_deployment()
    way = find_way(deployment, name, port, command.profile)
    printer.document({"command": list(way.command), "address": way.address})
    if prints:
        if not printer.as_json:
            printer.say(f"{shlex.join(way.command)}\n{way.address}")
        return CommandExit.DONE
    _require_programs()
    _require_port(port)
    hear_every_end()
    process = subprocess.Popen(way.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        if not _await_page(process, way.address, sleep):
            printer.complain(f"{name}: the tunnel ended with code {process.returncode}; above are the words of aws")
            return CommandExit.FAILED
        printer.say(f"{name}: {way.address}\nCtrl-C closes the tunnel; the workbench goes on (trainyard stop {name})")
        if opens and not open_browser(way.address):
            printer.say("no browser was found: open the address yourself")
        process.wait()
        printer.say(f"{name}: the tunnel is closed")
        return CommandExit.DONE
    except KeyboardInterrupt:
        printer.say(f"{name} goes on; to open it again: trainyard open {name}; to stop it: trainyard stop {name}")
        return CommandExit.LEFT
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the tunnel with the plugin that `aws` began for it, also where they do not end by themselves."""
    _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[bytes], what: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # none of them is left; a system may say so in either way
        os.killpg(process.pid, what)


def find_way(deployment: Deployment, name: str, port: int, profile: str | None) -> WayIn:
    """Raises CannotProceed where the job is no workbench, has ended, or has no machine yet."""
    found = find(deployment, name, ("job",))
    story = read_story(found.arn)
    # Of a request that was refused there is no plan; one that is being checked may get its `workbench` from a preset.
    known = story.plan if story.plan or found.status.runs else found.given
    if "workbench" not in known and (story.plan or not found.status.runs):
        raise CannotProceed(f"NAME: {name} is no workbench; allowed: a job whose request has `workbench`")
    if not found.status.runs:
        next_one = f" Start the next one with resume_from: {name}" if story.plan else ""
        raise CannotProceed(f"NAME: {name} has ended: {found.status.name}; allowed: a workbench that runs.{next_one}")
    newest = story.attempt
    if newest is None or newest.ended or not newest.instances:
        raise CannotProceed(
            f"{name}: it has no machine now (it is in {story.state or 'no state yet'}); try again in a minute"
        )
    token = read_token(deployment, name, newest)
    if not token:
        raise CannotProceed(
            f"{name}: its machine {newest.instances[0]} has not said yet how it is opened: it boots; try again in a minute"
        )
    if not names.REGION_PATTERN.fullmatch(newest.region):
        raise CannotProceed(
            f"{name}: where its machine {newest.instances[0]} runs is not known: another version launched it; open it with that one"
        )
    words = workbench.list_tunnel_words(newest.region, newest.instances[0], port)
    return WayIn(command=[*words, *(["--profile", profile] if profile else [])], address=workbench.address(token, port))


def read_token(deployment: Deployment, name: str, attempt: Try) -> str:
    """Returns the first token in the log of the attempt's node: the agent writes it before any code of a person runs."""
    wanted = LogFilter(job=name, rank=0, attempt=attempt.number)
    reading = LogReader(deployment.log_group, deployment.region, wanted)
    return next(
        (token for event in reading.read_new() if (token := workbench.find_token(str(event.get("message", ""))))), ""
    )


def _require_programs() -> None:
    for program, where in PROGRAMS.items():
        if shutil.which(program) is None:
            raise CannotProceed(
                f"{program}: is not installed here; allowed: install it ({where}), or --print on this computer"
            )


def _require_port(port: int) -> None:
    try:
        socket.create_server((workbench.LOOPBACK, port)).close()
    except OSError as problem:
        raise CannotProceed(
            f"--port: {port} of this computer is taken ({problem.strerror}); allowed: a free one, as in --port {port + 1}"
        ) from None


def _await_page(process: subprocess.Popen[bytes], address: str, sleep: Callable[[float], object]) -> bool:
    """Waits until the page answers, for as long as the tunnel lives: an image without JupyterLab takes minutes to install it."""
    while process.poll() is None:
        if _answers(address):
            return True
        sleep(LOOK_S)
    return False


def _answers(address: str) -> bool:
    """Takes whatever comes first for an answer, without a proxy, which has another loopback, and without a look at where it may lead."""
    where = urlsplit(address)
    asking = HTTPConnection(where.netloc, timeout=ANSWER_S)
    try:
        asking.request("GET", f"{where.path}?{where.query}")
        asking.getresponse()
    except (OSError, HTTPException):
        return False
    finally:
        asking.close()
    return True
