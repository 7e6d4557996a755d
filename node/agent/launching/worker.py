"""Runs one process of a training under torchrun, and writes down its exit code: torchrun itself ends with 1, whatever that code is.

torchrun runs this file with its own Python, which may be the one of an image: standard library alone, and Python 3.8.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

CODES = "codes"
"""The folder beside this file with a file for each process of the node that has ended by itself, which has its exit code."""
HANDED_ON = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2})
"""Signals that the process handles, and that must not end this one before it has seen the process' end."""
RESTORED = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Signals that Python ignores for itself, and that no program expects to be ignored."""
CANNOT_RUN, ABSENT = 126, 127
"""Exit codes of shells for a program that cannot be run, and for one that is not there."""


def main(words: list[str]) -> NoReturn:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*HANDED_ON, signal.SIGCHLD})
    # As torchrun itself runs a script.
    command = [sys.executable, "-u", *words] if words[0].endswith(".py") else words
    try:
        process = os.posix_spawnp(command[0], command, os.environ, setsigmask=before, setsigdef=RESTORED)
    except OSError as problem:
        print(f"trainyard: the command {command[0]!r} cannot be started: {problem.strerror}", file=sys.stderr)
        code = ABSENT if isinstance(problem, FileNotFoundError) else CANNOT_RUN
    else:
        code = wait(process)
    write(code if code >= 0 else 128 - code)
    end(code, before)


def wait(process: int) -> int:
    """Hands torchrun's signals on until the process has ended. Returns its exit code, -n after signal n."""
    # Today's torchrun makes this process the leader of a session and signals its whole group; older ones signal this process alone.
    is_group_signalled = os.getsid(0) == os.getpid()
    while True:
        came = signal.sigwaitinfo({*HANDED_ON, signal.SIGCHLD})
        if came.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        elif came.si_pid == os.getppid() and not is_group_signalled:
            os.kill(process, came.si_signo)


def write(code: int) -> None:
    """Writes the code as a whole file. On a full disk torchrun's own code is left, which says less."""
    rank, codes = os.environ["RANK"], Path(__file__).parent / CODES
    try:
        (codes / f".{rank}").write_text(f"{code}\n", "ascii")
        (codes / f".{rank}").replace(codes / rank)
    except OSError as problem:
        print(f"trainyard: the exit code {code} of process {rank} is not kept: {problem}", file=sys.stderr)


def end(code: int, mask: Iterable[int]) -> NoReturn:
    """Ends as the process did, so that torchrun reports the same: also by its signal, without another dump of memory."""
    sys.stderr.flush()
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main(sys.argv[1:])
