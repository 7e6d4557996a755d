"""Does beforehand what the first rehearsal of a fresh clone would wait for: `python -m rehearsal.prepare`.

Set-up runs it beside the download of PyTorch. It synthesises the assembly of the default settings, and Python compiles what a
rehearsal imports. A rehearsal works without it, and does again what has changed since.
"""

from __future__ import annotations

import sys

from rehearsal import assembly
from rehearsal.deployment import DeploymentFailed, context, synthesise
from rehearsal.job_command import SPEED


def prepare() -> None:
    """Raises DeploymentFailed, with the cause, where app.py rejects the settings."""
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
