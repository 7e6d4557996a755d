"""Does in advance what the first rehearsal of a fresh clone would wait for: `python -m rehearsal.prepare`.

Set-up runs it during the download of PyTorch. It synthesises the assembly of the default settings, and compiles the modules that
a rehearsal imports. A rehearsal also works without it, and repeats what has changed since.
"""

from __future__ import annotations

import sys

from rehearsal import assembly
from rehearsal.deployment import DeploymentFailed, context, synthesise
from rehearsal.job_command import SPEED


def prepare() -> None:
    """Prepares everything. Raises DeploymentFailed, with the cause, if app.py rejects the settings."""
    from rehearsal import job_run  # noqa: F401  (only for the byte code that the import leaves)
    from rehearsal.yard import MASTER_PORT

    values = context(SPEED, overrides={"master_port": MASTER_PORT})
    with assembly.kept(values, lambda out: synthesise(values, out)):
        pass


if __name__ == "__main__":
    print("Synthesising for the first rehearsal (build/assemblies) ...", flush=True)
    try:
        prepare()
    except DeploymentFailed as problem:
        sys.exit(str(problem))
